// Command member is a process of a fleet, built with the previous version of weir. It does what the workers of this
// version do: see worker_test.go.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sys/unix"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// An order is that of worker_test.go, as far as a member needs it.
type order struct {
	Redis, Dynamo string
	Group         string
	Shape         int
	Guard         time.Duration
	Callers       int
	Lasts         time.Duration
}

var shapes = []limit.Limit{
	{Name: "bucket", Rate: bucket.Rate{Amount: 100, Per: time.Second}},
	{Name: "rolling", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: time.Second}},
	{Name: "fixed", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Second},
}

func main() {
	var o order
	err := json.Unmarshal([]byte(os.Args[1]), &o)
	if err == nil {
		err = o.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (o *order) store() (fleet.Store, fleet.Options, error) {
	if o.Redis != "" {
		s, err := redisstore.Open(o.Redis, redisstore.Options{})
		return s, fleet.Options{}, err
	}
	cfg, err := awsconfig.LoadDefaultConfig(context.Background(), awsconfig.WithRegion("eu-west-1"),
		awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")))
	client := dynamodb.NewFromConfig(cfg, func(d *dynamodb.Options) { d.BaseEndpoint = &o.Dynamo })
	return dynamostore.New(client, "weir", dynamostore.Options{}), fleet.Options{Guard: o.Guard, Timeout: time.Second, Silence: 10 * time.Second}, err
}

func (o *order) run() error {
	s, options, err := o.store()
	if err != nil {
		return err
	}
	l := shapes[o.Shape]
	if l.Shape == limit.Calendar {
		options.Guard = 200 * time.Millisecond
	}
	f := fleet.New(s, options)
	f.Start()
	r, err := limit.NewShared(clock.System.Now(), l, f.Group(o.Group))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Lasts)
	defer cancel()
	var wg sync.WaitGroup
	for range o.Callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if !take(ctx, r, f.Away) {
					_ = clock.System.Sleep(ctx, time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	over, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	_ = f.Close(over) // the store may be away
	return s.Close()
}

// take takes a unit, waiting up to a second, and reports whether there was one.
func take(ctx context.Context, r *limit.Registry, away func() bool) bool {
	var c limit.Charges
	c.Add(limit.Charge{Registry: r, Cost: 1})
	now := clock.System.Now()
	until := now + time.Second
	alone := away()
	v := c.Take(now)
	for c.Asks(v, until-now) {
		var err error
		if v, err = c.Fetch(ctx, now, until, limit.Normal); err != nil || !v.OK {
			return false
		}
		now = clock.System.Now()
		v = c.Take(now)
	}
	if v.OK {
		note(now+ahead, monotonic(), alone || away())
	}
	return v.OK
}

var writes sync.Mutex

// note writes down when a unit was taken, and when the caller heard of it.
func note(at, heard time.Duration, alone bool) {
	var b [17]byte
	binary.LittleEndian.PutUint64(b[:], uint64(at))
	binary.LittleEndian.PutUint64(b[8:], uint64(heard))
	if alone {
		b[16] = 1
	}
	writes.Lock()
	defer writes.Unlock()
	_, _ = os.Stdout.Write(b[:])
}

// ahead is by how much the clock that all processes of a machine share is ahead of this process's.
var ahead = monotonicLess(clock.System)

func monotonicLess(c clock.Clock) (ahead time.Duration) {
	least := time.Hour
	for range 100 { // one of them is not interrupted
		from := monotonic()
		now := c.Now()
		to := monotonic()
		if to-from < least {
			least, ahead = to-from, from+(to-from)/2-now
		}
	}
	return ahead
}

func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it cannot fail
	return time.Duration(t.Nano())
}

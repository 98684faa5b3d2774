//go:build unix

package fleettest

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sys/unix"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// asWorker makes a test binary run a member of a fleet.
const asWorker = "WEIR_FLEET_WORKER"

func TestMain(m *testing.M) {
	if order := os.Getenv(asWorker); order != "" {
		if err := work(order, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if n := flag.Lookup("test.parallel"); n.Value.String() == n.DefValue {
		_ = flag.Set("test.parallel", "3") // they mostly wait
	}
	watchdog.Run(m)
}

// An order is a worker's task.
type order struct {
	Redis, Dynamo string // address of the store
	Group         string
	Limit         limit.Limit `json:"-"`
	Shape         int         // index in shapes
	Lease, Guard  time.Duration
	Callers       int
	Lasts         time.Duration
	Skew          time.Duration // error of its wall clock
}

// monotonic returns the time of a clock that all processes of a machine share.
func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it cannot fail
	return time.Duration(t.Nano())
}

// monotonicLess returns by how much that clock is ahead of another one at the same rate.
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

// skewed is the system's clock with another wall time.
type skewed struct {
	clock.Clock
	by time.Duration
}

func (s skewed) Wall(at time.Duration) time.Time { return s.Clock.Wall(at).Add(s.by) }

// work takes units as fast as possible and records each.
func work(text string, out io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	o.Limit = shapes[o.Shape]
	s, guard, timeout, err := o.store()
	if err != nil {
		return err
	}
	return o.run(s, guard, timeout, out)
}

func (o *order) store() (s fleet.Store, guard, timeout time.Duration, err error) {
	if o.Redis != "" {
		s, err := redisstore.Open(o.Redis, redisstore.Options{})
		if err != nil {
			return nil, 0, 0, err
		}
		return s, 0, 0, nil
	}
	s, err = dynamo(o.Dynamo)
	return s, o.Guard, time.Second, err
}

func dynamo(endpoint string) (*dynamostore.Store, error) {
	cfg, err := awsconfig.LoadDefaultConfig(context.Background(), awsconfig.WithRegion("eu-west-1"),
		awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")))
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &endpoint })
	return dynamostore.New(client, "weir", dynamostore.Options{}), nil
}

func (o *order) run(s fleet.Store, guard, timeout time.Duration, out io.Writer) error {
	c := clock.Clock(skewed{clock.System, o.Skew})
	if o.Skew == 0 {
		c = clock.System
	}
	if o.Limit.Shape == limit.Calendar {
		guard = 200 * time.Millisecond
	}
	var turns atomic.Int64 // number of times that the store failed or returned
	var silence time.Duration
	if o.Dynamo != "" {
		silence = 10 * time.Second // as in weir serve
	}
	f := fleet.New(s, fleet.Options{Clock: c, Lease: o.Lease, Guard: guard, Timeout: timeout, Silence: silence, Events: fleet.Events{
		Fallback: func(fleet.FallbackEvent) { turns.Add(1) },
	}})
	f.Start()
	u, err := weir.New(o.Group, weir.Policy{Limits: []limit.Limit{o.Limit}, MaxWait: o.Lasts}, weir.Options{Clock: c, Fleet: f})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Lasts)
	defer cancel()
	w := &writer{to: bufio.NewWriterSize(out, 16)} // writes every grant immediately, because a worker may be killed
	offset := monotonicLess(clock.System)
	var wg sync.WaitGroup
	for range o.Callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				before, away := turns.Load(), f.Away()
				p, err := u.Acquire(ctx, weir.Call{})
				if err != nil {
					_ = clock.System.Sleep(ctx, time.Millisecond)
					continue
				}
				w.note(grant{at: p.Allowed() + offset, heard: monotonic(), alone: away || f.Away() || turns.Load() != before})
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		})
	}
	wg.Wait()
	u.Close()
	over, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	_ = f.Close(over) // the store may be down
	return s.Close()
}

// A writer records grants.
type writer struct {
	mu sync.Mutex
	to *bufio.Writer
}

func (w *writer) note(g grant) {
	var b [17]byte
	binary.LittleEndian.PutUint64(b[:], uint64(g.at))
	binary.LittleEndian.PutUint64(b[8:], uint64(g.heard))
	if g.alone {
		b[16] = 1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.to.Write(b[:])
	_ = w.to.Flush()
}

func read(r io.Reader) (all []grant) {
	in := bufio.NewReader(r)
	for {
		var b [17]byte
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return all
		}
		at, heard := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
		all = append(all, grant{time.Duration(at), time.Duration(heard), b[16] == 1})
	}
}

// spawn starts a worker process. Its grants arrive when it has ended.
func spawn(t testing.TB, o order) (*exec.Cmd, <-chan []grant) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"="+string(text))
	return collect(t, cmd)
}

// collect starts a process and reads its grants.
func collect(t testing.TB, cmd *exec.Cmd) (*exec.Cmd, <-chan []grant) {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan []grant, 1)
	go func() {
		all := read(out)
		_ = cmd.Wait() // it may have been killed
		done <- all
	}()
	return cmd, done
}

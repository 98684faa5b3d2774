package awsx_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
)

// A clockwork is a service that records the times of requests.
type clockwork struct {
	mu sync.Mutex
	at []time.Time
}

func (c *clockwork) Do(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, time.Now())
	return echo{}.Do(r)
}

// Fifty workers share 10 a second: no window has more than burst + rate * t, all calls are made, and the rate is used.
func TestFiftyWorkersOnTenASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := new(clockwork)
		cfg := aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "s", ""), HTTPClient: far}
		g := awsx.New(awsx.Options{Policy: func(target awsx.Target) weir.Policy {
			p := awsx.Preset(target.Service)
			p.MaxWait = time.Hour
			return p
		}})
		defer g.Close()
		g.Attach(&cfg)
		c := drs.NewFromConfig(cfg)
		begin := time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for range 20 {
					if _, err := c.DescribeJobs(t.Context(), nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		took := time.Since(begin)
		slices.SortFunc(far.at, time.Time.Compare)
		if len(far.at) != 1000 {
			t.Fatalf("%d calls", len(far.at))
		}
		for i := range far.at {
			for _, j := range []int{i + 20, i + 30, i + 120, 999} {
				if j <= i || j > 999 {
					continue
				}
				if most := 20 + far.at[j].Sub(far.at[i]).Seconds()*10 + 1e-6; float64(j-i+1) > most+1 {
					t.Fatalf("calls %d to %d came within %v", i, j, far.at[j].Sub(far.at[i]))
				}
			}
		}
		if used := (1000 - 20) / (took.Seconds() * 10); used < 0.95 {
			t.Errorf("%.1f%% of the rate was used", 100*used)
		}
	})
}

// A service that throttles gets fewer requests from then on.
func TestThrottlesSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "s", ""), HTTPClient: tooMuch{}}
		g := awsx.New(awsx.Options{})
		defer g.Close()
		g.Attach(&cfg)
		c := dynamodb.NewFromConfig(cfg)
		for range 20 {
			_, _ = c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("hot"), Key: map[string]ddb.AttributeValue{}})
		}
		u, err := g.Upstream(g.Targets()[0])
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, l := range u.Look(10).Limits {
			if l.Limit.Name == "reads" && l.Key == "hot" {
				seen = true
				if l.Level.PerSecond > 1000 {
					t.Errorf("still %v a second after twenty throttles", l.Level.PerSecond)
				}
			}
		}
		if !seen {
			t.Error("the table has no rate of its own")
		}
	})
}

type tooMuch struct{}

func (tooMuch) Do(r *http.Request) (*http.Response, error) {
	resp, err := echo{}.Do(r)
	resp.StatusCode = 400
	resp.Header.Set("X-Amzn-Errortype", "ProvisionedThroughputExceededException")
	return resp, err
}

// A caller that leaves while it waits returns immediately, without a request.
func TestLeavingWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := new(clockwork)
		cfg := aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "s", ""), HTTPClient: far}
		g := awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy {
			p := brisk(weir.Policy{})
			p.MaxWait, p.Limits = 10*time.Hour, oneAnHour
			return p
		}})
		defer g.Close()
		g.Attach(&cfg)
		c := dynamodb.NewFromConfig(cfg)
		if _, err := c.ListTables(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		begin := time.Now()
		_, err := c.ListTables(ctx, nil)
		if took := time.Since(begin); !errors.Is(err, context.Canceled) || took != 3*time.Second || len(far.at) != 1 {
			t.Errorf("%d sent, after %v: %v", len(far.at), took, err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.ListTables(short, nil)
		if refusal, ok := errors.AsType[*weir.Refusal](err); !ok || refusal.RetryAfter < 50*time.Minute {
			t.Errorf("a turn that comes too late: %v", err)
		}
	})
}

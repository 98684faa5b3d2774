package drs_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"

	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// work makes calls with a number of workers, and returns the duration and the number of failures.
func work(t *testing.T, workers, calls int, clients ...*drs.Client) (took time.Duration, bad int64) {
	var failed atomic.Int64
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range workers {
		c := clients[i%len(clients)]
		wg.Go(func() {
			for range calls / workers {
				if _, err := c.DescribeSourceServers(context.Background(), &sdk.DescribeSourceServersInput{}); err != nil {
					t.Error(err)
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begin), failed.Load()
}

// Fifty workers exceed DRS's rate. Within Spared, DRS throttles no request and stays busy, although network delays vary.
func TestFiftyWorkersAreNeverThrottled(t *testing.T) {
	seed := rand.Uint64()
	for _, slowest := range []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const calls = 500
			var mu sync.Mutex
			rng := rand.New(rand.NewPCG(seed, 1))
			server := drstest.AWS()
			server.Delay = func(string) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(rng.Int64N(int64(slowest) + 1))
			}
			cfg, end := inside(server)
			defer end()
			took, bad := work(t, 50, calls, drs.New(cfg, drs.Options{Rate: drs.Spared}))
			ideal := time.Duration((calls - server.Burst) / server.Rate * float64(time.Second))
			used := 100 * ideal.Seconds() / took.Seconds()
			t.Logf("delays up to %v: %d calls in %v, at best in %v: %.1f%% of the rate", slowest, calls, took, ideal, used)
			if bad > 0 || server.Throttled() > 0 || server.Requests("DescribeSourceServers") != calls || used < 95 {
				t.Errorf("seed %#x, delays up to %v: %d failed, %d throttled, %d sent, %.1f%% used", seed, slowest, bad, server.Throttled(), server.Requests("DescribeSourceServers"), used)
			}
		})
	}
}

// The same at ten times the rate and with another burst, against a server that verifies signatures. As with AWS's quota, a fifth
// of a second's requests is held back from the burst.
func TestFiftyWorkersWhoSignAreNeverThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, burst, calls = 100, 40, 200
		server := &drstest.Server{Rate: rate, Burst: burst, Verify: &sigtest.Verifier{Secrets: map[string]string{"AKID": "secret"}}}
		cfg, end := inside(server)
		defer end()
		took, bad := work(t, 50, calls, drs.New(cfg, drs.Options{Rate: bucket.Rate{Amount: rate, Per: time.Second, Burst: burst - rate/5}}))
		ideal := time.Duration(float64(calls-burst+rate/5) / rate * float64(time.Second))
		if bad > 0 || server.Throttled() > 0 || server.Requests("DescribeSourceServers") != calls || took > ideal*105/100 {
			t.Errorf("%d failed, %d throttled, %d sent in %v, at best in %v", bad, server.Throttled(), server.Requests("DescribeSourceServers"), took, ideal)
		}
	})
}

// Each account and region has a separate rate, and clients that share a guard share it.
func TestRegionsAndAccountsAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		cfg, end := inside(server)
		defer end()
		guard := awsx.New(awsx.Options{})
		var clients []*drs.Client
		for _, key := range []string{"AK1", "AK2"} {
			for _, region := range []string{"eu-west-1", "us-east-1"} {
				other := cfg.Copy()
				other.Region, other.Credentials = region, credentials.NewStaticCredentialsProvider(key, "secret", "")
				clients = append(clients, drs.New(other, drs.Options{Guard: guard}))
			}
		}
		if took, _ := work(t, 4*30, 4*30, clients...); took != time.Second {
			t.Errorf("30 calls of each of four took %v, want 1s", took)
		}
		time.Sleep(time.Minute)
		twin := drs.New(cfg, drs.Options{Guard: guard})
		if took, _ := work(t, 40, 40, twin, drs.New(cfg, drs.Options{Guard: guard})); took != 2*time.Second {
			t.Errorf("40 calls of two clients of one account took %v, want 2s", took)
		}
		if server.Throttled() != 0 {
			t.Errorf("%d were throttled", server.Throttled())
		}
	})
}

// Processes of a fleet share the rate of their account.
func TestAFleetSharesTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		cfg, end := inside(server)
		defer end()
		store := fleet.NewMemory(nil)
		var clients []*drs.Client
		for range 3 {
			fleet := fleet.New(store, fleet.Options{})
			fleet.Start()
			defer fleet.Close(context.Background())
			c := drs.New(cfg, drs.Options{Fleet: fleet, Account: "123456789012"})
			defer c.Close()
			clients = append(clients, c)
		}
		const calls = 300
		took, bad := work(t, 60, calls, clients...)
		t.Logf("%d calls of three processes took %v: %.1f a second", calls, took, calls/took.Seconds())
		if bad > 0 || server.Throttled() > 0 || took > 40*time.Second {
			t.Errorf("%d failed, %d were throttled; took %v", bad, server.Throttled(), took)
		}
	})
}

func TestACallerWhoLeavesDoesNotWaitForHisTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		cfg, end := inside(server)
		defer end()
		c := drs.New(cfg, drs.Options{Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}, MaxWait: 2 * time.Hour})
		if _, bad := work(t, 1, 1, c); bad > 0 {
			t.Fatal("the first call failed")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := c.StartRecovery(ctx, recovering(oneServer))
		if took := time.Since(begin); err == nil || took > time.Second || server.Requests("StartRecovery") != 0 || server.Requests("DescribeJobs") != 0 {
			t.Errorf("after %v, %d looks for a job of a call that was never sent: %v", took, server.Requests("DescribeJobs"), err)
		}
	})
}

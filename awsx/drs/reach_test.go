package drs_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/retry"
)

// For any error code of DRS, each of twenty concurrent calls completes its schedule of six attempts. A breaker opened by the
// other calls does not shorten it. While no call succeeds, some attempts are held back. A call that is alone sends all six.
func TestEveryCallComesToTheEndOfItsSchedule(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
	}{
		{429, "ThrottlingException"}, {503, "RequestLimitExceeded"}, {503, "ServiceUnavailable"}, {500, "InternalServerException"},
		{402, "ServiceQuotaExceededException"},
	} {
		for _, calls := range []int{1, 20} {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				sent, held := 0, 0
				refuses := refusing(c.status, c.code, "", &sent)
				cfg, end := inside(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					refuses.ServeHTTP(w, r)
				}))
				defer end()
				client := drs.New(cfg, drs.Options{Events: weir.Events{HeldBack: func(weir.HeldBack) {
					mu.Lock()
					defer mu.Unlock()
					held++
				}}})
				var wg sync.WaitGroup
				for range calls {
					wg.Go(func() {
						began := time.Now()
						_, err := client.DescribeJobs(t.Context(), &sdk.DescribeJobsInput{})
						if took := time.Since(began); !errors.Is(err, retry.ErrAttempts) || took < 15500*time.Millisecond {
							t.Errorf("%s, one of %d calls: over after %v: %v", c.code, calls, took, err)
						}
					})
				}
				wg.Wait()
				if sent+held != 6*calls || calls == 1 && held > 0 {
					t.Errorf("%s: of %d calls %d attempts were sent and %d held back, want 6 of each", c.code, calls, sent, held)
				}
			})
		}
	}
}

// As many first calls as DRS allows proceed immediately, and none waits longer than half a minute.
func TestTheConstantsOfDRS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			o    drs.Options
			want int // calls that proceed within the maximum wait
		}{
			{drs.Options{}, 20 + 30*10}, {drs.Options{Rate: drs.Spared}, 18 + 30*10},
		} {
			var mu sync.Mutex
			sent, late := 0, 0
			cfg, end := inside(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				sent++
				_, _ = w.Write([]byte(`{}`))
			}))
			client := drs.New(cfg, c.o)
			var wg sync.WaitGroup
			for range 400 {
				wg.Go(func() {
					if _, err := client.DescribeJobs(t.Context(), &sdk.DescribeJobsInput{}); err != nil {
						mu.Lock()
						defer mu.Unlock()
						late++
					}
				})
			}
			wg.Wait()
			end()
			if sent != c.want || late != 400-c.want {
				t.Errorf("burst %d: %d calls went and %d were refused, want %d", c.o.Rate.Burst, sent, late, c.want)
			}
		}
	})
}

package drs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet/jobs"
	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/outcome/classify"
	"github.com/seed1158cd35/weir/retry"
)

// first returns a fault for the first request of an operation.
func first(operation string, f drstest.Fault) func(string) drstest.Fault {
	done := false
	return func(o string) drstest.Fault {
		if o != operation || done {
			return drstest.None
		}
		done = true
		return f
	}
}

// Results of a call whose first request meets a fault.
func TestOneFaultOfStartRecovery(t *testing.T) {
	for _, c := range []struct {
		fault    drstest.Fault
		known    bool
		requests int
	}{
		{drstest.None, true, 1}, {drstest.Busy, true, 2},
		{drstest.LostAfter, true, 1}, {drstest.ResetAfter, true, 1}, {drstest.HangAfter, true, 1}, {drstest.CutAfter, true, 1},
		{drstest.EmptyAfter, true, 1}, {drstest.FailAfter, true, 1}, {drstest.GatewayAfter, true, 1},
		{drstest.LostBefore, false, 1}, {drstest.ResetBefore, false, 1}, {drstest.HangBefore, false, 1}, {drstest.FailBefore, true, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := drstest.AWS()
			server.Listed, server.Fault = 5*time.Second, first("StartRecovery", c.fault)
			cfg, end := inside(server)
			defer end()
			out, err := drs.New(cfg, drs.Options{}).StartRecovery(t.Context(), recovering(oneServer))
			if server.Requests("StartRecovery") != c.requests {
				t.Errorf("fault %d: sent %d times, want %d", c.fault, server.Requests("StartRecovery"), c.requests)
			}
			if c.known {
				if err != nil || aws.ToString(out.Job.JobID) == "" || server.Recoveries() != 1 {
					t.Errorf("fault %d: %d started: %v", c.fault, server.Recoveries(), err)
				}
				return
			}
			lost, ok := errors.AsType[*drs.UnknownError](err)
			if !ok || server.Recoveries() != 0 || lost.Tag == "" || !errors.Is(err, jobs.ErrUnknown) || !strings.Contains(err.Error(), lost.Tag) || !strings.Contains(err.Error(), oneServer) {
				t.Errorf("fault %d: %d started: %v", c.fault, server.Recoveries(), err)
			}
		})
	}
}

// The same with real TCP connections that are reset.
func TestConnectionsThatBreak(t *testing.T) {
	for _, f := range []drstest.Fault{drstest.LostAfter, drstest.ResetAfter, drstest.CutAfter} {
		server := &drstest.Server{Fault: first("StartRecovery", f)}
		out, err := drs.New(listening(t, server), drs.Options{}).StartRecovery(t.Context(), recovering(oneServer))
		if err != nil || out.Job == nil || server.Requests("StartRecovery") != 1 {
			t.Errorf("fault %d: sent %d times: %v", f, server.Requests("StartRecovery"), err)
		}
	}
}

// Neither a policy that takes a 500 for a throttle, nor an outer weir that considers the call safe, starts a second recovery.
func TestNoPolicyStartsASecondRecovery(t *testing.T) {
	server := &drstest.Server{Fault: func(o string) drstest.Fault {
		if o == "StartRecovery" {
			return drstest.FailBefore
		}
		return drstest.None
	}}
	cfg := listening(t, server)
	loose := weir.Policy{
		Classify: classify.Rules{Throttled: []string{"InternalServerException"}},
		Retry:    retry.Config{Base: 1, Cap: 1, HintSlack: 1}, MaxPause: 1, Budget: retry.BudgetConfig{Share: 1, Floor: 100},
	}
	guard := awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy { return loose }})
	around, err := weir.New("around", loose, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	start := func(o drs.Options) func(context.Context) (*sdk.StartRecoveryOutput, error) {
		o.Clock = hasty{clock.System}
		return func(ctx context.Context) (*sdk.StartRecoveryOutput, error) {
			return drs.New(cfg, o).StartRecovery(ctx, recovering(oneServer))
		}
	}
	_, within := start(drs.Options{Guard: guard})(t.Context())
	if _, ok := errors.AsType[*drs.UnknownError](within); !ok || server.Requests("StartRecovery") != 1 {
		t.Errorf("sent %d times: %v", server.Requests("StartRecovery"), within)
	}
	_, outside := weir.Do(t.Context(), around, weir.Call{Safe: true}, start(drs.Options{}))
	if _, ok := errors.AsType[*drs.UnknownError](outside); !ok || server.Requests("StartRecovery") != 2 {
		t.Errorf("sent %d times: %v", server.Requests("StartRecovery")-1, outside)
	}
}

type hasty struct{ clock.Clock }

func (hasty) Sleep(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

// The job of a lost response is also found if an outer weir makes the attempts.
func TestALostAnswerWithinAnotherWeir(t *testing.T) {
	server := &drstest.Server{Fault: first("StartRecovery", drstest.LostAfter)}
	c := drs.New(listening(t, server), drs.Options{})
	around, err := weir.New("around", weir.Policy{}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := weir.Do(t.Context(), around, weir.Call{Safe: true}, func(ctx context.Context) (*sdk.StartRecoveryOutput, error) {
		return c.StartRecovery(ctx, recovering(oneServer))
	})
	if err != nil || out.Job == nil || server.Recoveries() != 1 {
		t.Errorf("%d started: %v", server.Recoveries(), err)
	}
}

// Without a tag the owner of a job is unknown: the job is listed in the error, not returned.
func TestUntaggedRecoveries(t *testing.T) {
	full := recovering(oneServer, "s-2")
	full.Tags, full.IsDrill = map[string]string{}, aws.Bool(true)
	for i := range 50 {
		full.Tags[fmt.Sprint("tag-", i)] = "v"
	}
	plain := recovering("s-2", oneServer)
	for _, c := range []struct {
		in         *sdk.StartRecoveryInput
		o          drs.Options
		fault      drstest.Fault
		candidates int
	}{
		{full, drs.Options{}, drstest.LostAfter, 1}, {full, drs.Options{}, drstest.LostBefore, 0},
		{plain, drs.Options{Untagged: true}, drstest.LostAfter, 1}, {plain, drs.Options{Untagged: true}, drstest.LostBefore, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := drstest.AWS()
			cfg, end := inside(server)
			defer end()
			client := drs.New(cfg, c.o)
			if _, err := client.StartRecovery(t.Context(), c.in); err != nil { // an older, similar job
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			for _, other := range []*sdk.StartRecoveryInput{recovering(oneServer), recovering(oneServer, "s-2", "s-3")} {
				if _, err := client.StartRecovery(t.Context(), other); err != nil { // later, different jobs
					t.Fatal(err)
				}
			}
			server.Fault = first("StartRecovery", c.fault)
			before, tags := server.Recoveries(), maps.Clone(c.in.Tags)
			_, err := client.StartRecovery(t.Context(), c.in)
			lost, ok := errors.AsType[*drs.UnknownError](err)
			if !ok || len(lost.Candidates) != c.candidates || lost.Tag != "" || server.Recoveries() != before+c.candidates {
				t.Fatalf("fault %d: %d started: %v", c.fault, server.Recoveries()-before, err)
			}
			if !maps.Equal(tags, c.in.Tags) || c.candidates > 0 && !strings.Contains(err.Error(), lost.Candidates[0]) {
				t.Errorf("fault %d: tags %v: %v", c.fault, c.in.Tags, err)
			}
		})
	}
}

// A caller that leaves while the response is awaited gets the known state within five seconds.
func TestACallerWhoLeavesLearnsOfHisRecovery(t *testing.T) {
	for fault, known := range map[drstest.Fault]bool{drstest.HangAfter: true, drstest.HangBefore: false} {
		synctest.Test(t, func(t *testing.T) {
			server := drstest.AWS()
			server.Fault = first("StartRecovery", fault)
			cfg, end := inside(server)
			defer end()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(3*time.Second, cancel)
			begin := time.Now()
			out, err := drs.New(cfg, drs.Options{}).StartRecovery(ctx, recovering(oneServer))
			if took := time.Since(begin); took > 8*time.Second {
				t.Errorf("took %v", took)
			}
			if known && (err != nil || out.Job == nil) || !known && (!errors.Is(err, context.Canceled) || !errors.Is(err, jobs.ErrUnknown)) {
				t.Errorf("fault %d: %v", fault, err)
			}
		})
	}
}

// The tag of an UnknownError finds the job once DRS lists it.
func TestAJobThatIsListedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := drstest.AWS()
		server.Listed, server.Fault = time.Minute, first("StartRecovery", drstest.LostAfter)
		cfg, end := inside(server)
		defer end()
		c := drs.New(cfg, drs.Options{})
		_, err := c.StartRecovery(t.Context(), recovering(oneServer))
		lost, ok := errors.AsType[*drs.UnknownError](err)
		if !ok {
			t.Fatal(err)
		}
		if job, err := c.Recovery(t.Context(), lost.Tag); job != nil || err != nil {
			t.Errorf("%v, %v", job, err)
		}
		time.Sleep(time.Minute)
		if job, err := c.Recovery(t.Context(), lost.Tag); job == nil || err != nil {
			t.Errorf("it is not found: %v", err)
		}
	})
}

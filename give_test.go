package weir_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A call that waits for the reset of a spent budget proceeds as soon as enough units are given back.
func TestGiveWakesWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := weir.New("api", weir.Policy{MaxWait: 200 * time.Hour, Limits: []limit.Limit{
			{Name: "money", Unit: limit.USD, Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: 100 * time.Hour}},
		}}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		first, err := u.Acquire(background, dollars(90))
		if err != nil {
			t.Fatal(err)
		}
		first.Report(costs(90))
		begin := time.Now()
		time.AfterFunc(5500*time.Millisecond, func() {
			if given, err := u.Give("money", "", 40); given != 40 || err != nil {
				t.Errorf("%d given, %v", given, err)
			}
		})
		second, err := u.Acquire(background, dollars(50))
		if took := time.Since(begin); err != nil || took != 5500*time.Millisecond {
			t.Errorf("the call waited %v, %v", took, err)
		}
		second.Report(costs(50))
	})
}

func TestGiveRefusesWhatItCannotGive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := joined(t, 2, weir.Policy{Limits: []limit.Limit{sharedBudgets["rolling"], {Name: "calls", Rate: bucket.Rate{Amount: 100, Per: time.Hour, Burst: 100}}}})
		for name, want := range map[string]string{
			"money": "limit money: " + weir.ErrSharedBudget.Error(),
			"calls": "limit calls: counts requests, and only units of limits in dollars can be given back",
			"none":  `limit "none": ` + all[0].Name() + " has no such limit",
		} {
			given, err := all[0].Give(name, "", 5)
			if given != 0 || err == nil || err.Error() != want || errors.Is(err, weir.ErrSharedBudget) != (name == "money") {
				t.Errorf("%s: %d given, %v, want %s", name, given, err, want)
			}
		}
	})
}

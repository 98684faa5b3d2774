package weir_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome/classify"
	"github.com/seed1158cd35/weir/retry"
)

func TestZeroPolicyIsValid(t *testing.T) {
	p := weir.Policy{}.WithDefaults()
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	want := weir.Timeouts{Connect: 5 * sec, TLS: 5 * sec, Headers: 5 * sec, Attempt: 10 * sec, Call: time.Minute, Idle: 30 * sec, UploadIdle: 30 * sec, UploadOver: 30 * sec}
	if p.Timeouts != want || p.MaxWait != 10*sec || p.MaxPause != 15*time.Minute {
		t.Errorf("got %+v, %v, %v", p.Timeouts, p.MaxWait, p.MaxPause)
	}
}

func TestNegativeMeansNoneOrNoBound(t *testing.T) {
	p := weir.Policy{Timeouts: weir.Timeouts{Connect: -1, TLS: -1, Headers: -1, Attempt: -1, Call: -1, Idle: -1, Body: -1, UploadIdle: -1, UploadRate: -1, UploadOver: 30 * sec}, MaxWait: -1}
	if got := p.WithDefaults(); got.Timeouts != p.Timeouts || got.MaxWait != -1 || got.Validate() != nil {
		t.Errorf("got %+v, %v", got.Timeouts, got.MaxWait)
	}
}

func TestValidateReportsEveryMistake(t *testing.T) {
	p := weir.Policy{
		Retry:    retry.Config{Attempts: -1, Base: -1},
		Budget:   retry.BudgetConfig{Share: -1},
		Breaker:  breaker.Config{Failures: -1},
		Classify: classify.Rules{Failed: []string{""}},
		Quota:    &retry.QuotaConfig{Retry: -1},
		MaxPause: -1,
		Operations: []weir.Operation{
			{Name: "a", Methods: []string{"get", ""}, Path: "x", Safe: "perhaps", Retry: &retry.Config{Attempts: -1}},
			{Name: "a"}, {},
		},
		Limits: []limit.Limit{rate("x", 1, sec, 0), rate("x", 1, sec, 0), {}, {
			Name: "y", Rate: rate("", 1, sec, 0).Rate, Operations: []string{"a", "default", "nowhere"}}},
	}
	var fields []string
	err := p.Validate()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("got %v", err)
	}
	for _, e := range joined.Unwrap() {
		f, ok := errors.AsType[*weir.FieldError](e)
		if !ok || errors.Unwrap(f) == nil || f.Error() != f.Field+": "+f.Err.Error() {
			t.Errorf("%v is no FieldError", e)
			continue
		}
		fields = append(fields, f.Field)
	}
	got := fmt.Sprint(slices.Compact(slices.Clone(fields)))
	want := "[retry budget breaker classify quota max_pause operations[0] operations[1] operations[2] limits[1] limits[2] limits[3]]"
	if got != want {
		t.Errorf("got  %s\nwant %s\n%v", got, want, err)
	}
	if n := count(fields, "operations[0]"); n != 5 {
		t.Errorf("%d mistakes of operations[0], want 5: %v", n, err)
	}
	if _, err := weir.New("api", p, weir.Options{}); err == nil {
		t.Error("New takes a policy with mistakes")
	}
}

func count(all []string, s string) (n int) {
	for _, x := range all {
		if x == s {
			n++
		}
	}
	return n
}

// A call is charged to at most 64 limits, of which 32 may be shared. A policy with more limits for one operation is
// refused with the operation's name.
func TestAnOperationOfTooManyLimits(t *testing.T) {
	p := weir.Policy{Operations: []weir.Operation{{Name: "few"}, {Name: "many"}}}
	for i := range 65 {
		l := rate(fmt.Sprint("l", i), 10, sec, 0)
		l.Local = i >= 33
		if i > 0 {
			l.Operations = []string{"many"}
		}
		p.Limits = append(p.Limits, l)
	}
	for _, c := range []struct {
		n    int
		want string
	}{
		{65, `limits: 65 limits count operation "many": want at most 64; set operations of each limit, or remove some limits`},
		{33, `limits: 33 limits that are not local count operation "many": want at most 32; set operations of each limit, or remove some limits`},
	} {
		p.Limits = p.Limits[:c.n]
		if err := p.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	p.Limits = p.Limits[:32]
	u, err := weir.New("api", p, weir.Options{Fleet: fleet.New(fleet.NewMemory(nil), fleet.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, d := try(u, weir.Call{Operation: "many"}); !d.Allowed {
		t.Errorf("a call of 32 shared limits: %v", d)
	}
}

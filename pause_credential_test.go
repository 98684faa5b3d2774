package weir_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// bearing returns a call with its own credential.
func bearing(credential string) weir.Call {
	return weir.Call{Credential: credential, Safe: true}
}

// throttle makes the upstream ask a call to wait.
func throttle(t *testing.T, u *weir.Upstream, c weir.Call, wait time.Duration) {
	t.Helper()
	p, d := try(u, c)
	if !d.Allowed {
		t.Fatalf("%+v: %+v", c, d)
	}
	p.Report(hinted(wait).O)
}

// succeed makes a call that succeeds, and reports whether it was allowed.
func succeed(u *weir.Upstream, c weir.Call) bool {
	p, d := try(u, c)
	if d.Allowed {
		p.Report(outcome.Outcome{Class: outcome.OK})
	}
	return d.Allowed
}

func TestHintPausesOnlyTheCredentialThatReceivedIt(t *testing.T) {
	for name, share := range map[string]func(c *weir.Call){
		"own pool":          func(*weir.Call) {},
		"pool of one model": func(c *weir.Call) { c.Pool = c.Credential + "/m" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := open(t, steady(rate("all", 1000, sec, 1000)), weir.Options{})
				of := func(credential string) weir.Call {
					c := bearing(credential)
					share(&c)
					return c
				}
				throttle(t, u, of("a"), 15*time.Minute)
				if succeed(u, of("a")) {
					t.Error("the credential that received the hint is served")
				}
				for i := range 100 {
					if !succeed(u, of(fmt.Sprint("b", i))) {
						t.Fatalf("credential %d is refused", i)
					}
				}
				pass(14 * time.Minute)
				if succeed(u, of("a")) {
					t.Error("successes of others have shortened the pause")
				}
				pass(time.Minute)
				if !succeed(u, of("a")) {
					t.Error("refused after the pause")
				}
			})
		})
	}
}

func TestHintsToTwoCredentialsPauseAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("all", 1000, sec, 1000)), weir.Options{})
		throttle(t, u, bearing("a"), 30*sec)
		throttle(t, u, bearing("b"), 20*sec)
		_, d := try(u, bearing("c"))
		if d.Allowed || d.Reason != weir.Paused || d.RetryAfter > sec {
			t.Errorf("another credential gets %+v, want a pause that may end with the next probe", d)
		}
		if _, d := try(u, weir.Call{Credential: weir.NoCredential}); d.Allowed {
			t.Error("a call without a credential is served")
		}
		pass(20 * sec)
		if !succeed(u, bearing("c")) || succeed(u, bearing("a")) {
			t.Error("want the pause of all to end with the shorter hint, and that of the credential with its own")
		}
	})
}

func TestOneCallersCredentialsCountAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		for _, credential := range []string{"a", "b", "c"} {
			c := bearing(credential)
			c.Caller = "mallory"
			throttle(t, u, c, 15*time.Minute)
		}
		c := bearing("d")
		c.Caller = "alice"
		if !succeed(u, c) {
			t.Error("credentials of one caller pause those of another")
		}
	})
}

func TestProbeThatSucceedsEndsThePauseOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		early, _ := try(u, bearing("c"))
		succeed(u, bearing("brief"))
		brief, _ := try(u, bearing("brief"))
		throttle(t, u, bearing("a"), 15*time.Minute)
		throttle(t, u, bearing("b"), 15*time.Minute)
		brief.Report(hinted(5 * sec).O)
		early.Report(outcome.Outcome{Class: outcome.OK})
		if succeed(u, bearing("c")) {
			t.Fatal("a success that was sent before the hint has ended the pause")
		}
		pass(sec)
		if succeed(u, bearing("brief")) {
			t.Fatal("a credential probes before its own pause is over")
		}
		probe, d := try(u, bearing("c"))
		if !d.Allowed {
			t.Fatal(d)
		}
		for range 10 {
			if _, d := try(u, bearing("d")); d.Allowed {
				t.Fatal("a second probe within a second")
			}
		}
		probe.Report(outcome.Outcome{Class: outcome.Failed})
		pass(1250 * time.Millisecond) // for credentials without a success so far
		if succeed(u, bearing("a")) || succeed(u, bearing("b")) {
			t.Fatal("a credential that received a hint is a probe")
		}
		if !succeed(u, bearing("d")) {
			t.Fatal("no second probe")
		}
		for i := range 100 {
			if !succeed(u, bearing(fmt.Sprint(i))) {
				t.Fatal("the probe's success has not ended the pause")
			}
		}
		throttle(t, u, bearing("mallory"), 15*time.Minute)
		throttle(t, u, bearing("mallory's other"), 15*time.Minute)
		if !succeed(u, bearing("c")) {
			t.Error("hints that a success has contradicted pause all again")
		}
		if succeed(u, bearing("a")) {
			t.Error("the pause of a credential was shortened")
		}
	})
}

func TestHintWithoutACredentialPausesAllUntilAProbeSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("all", 1000, sec, 1000)), weir.Options{})
		succeed(u, bearing("a"))
		none := weir.Call{Credential: weir.NoCredential}
		throttle(t, u, none, 15*time.Minute)
		if succeed(u, bearing("a")) {
			t.Error("not everybody is paused")
		}
		pass(sec)
		if !succeed(u, bearing("a")) || !succeed(u, bearing("b")) {
			t.Error("want one probe, and after its success all to go")
		}
		if succeed(u, none) {
			t.Error("calls without a credential go on before their time")
		}
	})
}

// A call without a credential that is throttled at the start stops no caller with a credential.
func TestEarlyHintWithoutACredentialStopsNoCredential(t *testing.T) {
	for _, p := range []weir.Policy{steady(), steady(rate("all", 1000, sec, 1000))} {
		synctest.Test(t, func(t *testing.T) {
			u := open(t, p, weir.Options{})
			throttle(t, u, weir.Call{Credential: weir.NoCredential}, 10*time.Minute)
			for _, credential := range []string{"a", "b", "a"} {
				if !succeed(u, bearing(credential)) {
					t.Errorf("%v: %s is paused", p.Limits, credential)
				}
			}
		})
	}
}

// If callers bring no credentials, or weir adds the same one to all calls, a hint applies to all calls and in full.
func TestHintToASharedCredentialPausesAllInFull(t *testing.T) {
	for _, c := range []weir.Call{{}, {Credential: weir.NoCredential}} {
		synctest.Test(t, func(t *testing.T) {
			u := open(t, steady(rate("all", 1000, sec, 1000)), weir.Options{})
			throttle(t, u, c, 30*sec)
			for range 30 {
				if succeed(u, c) {
					t.Fatal("served during the pause")
				}
				pass(sec)
			}
			if !succeed(u, c) {
				t.Error("refused after the pause")
			}
		})
	}
}

// Waiting callers probe too: no call must be refused before another one can find out that the pause is over.
func TestWaitingCallerProbesThePauseOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(rate("all", 1000, sec, 1000))
		p.MaxWait = 20 * time.Minute
		u := open(t, p, weir.Options{})
		throttle(t, u, bearing("a"), 15*time.Minute)
		throttle(t, u, bearing("b"), 15*time.Minute)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				begin := time.Now()
				p, err := u.Acquire(t.Context(), bearing(fmt.Sprint("c", i)))
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(100 * time.Millisecond)
				p.Report(outcome.Outcome{Class: outcome.OK})
				if took := time.Since(begin); took > 3*sec {
					t.Errorf("call %d took %v", i, took)
				}
			})
		}
		wg.Wait()
	})
}

// A caller that invents credentials can fill neither the memory nor the places of other credentials' hints.
func TestMadeUpCredentialsStopNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		refused := 0
		for i := range 20_000 {
			c := bearing(fmt.Sprint("made up ", i))
			if p, d := try(u, c); d.Allowed {
				p.Report(hinted(15 * time.Minute).O)
			}
			if !succeed(u, bearing("alice")) {
				refused++
			}
			pass(10 * time.Millisecond)
		}
		if refused > 110 { // one second of the first pause
			t.Errorf("%d of 20000 calls of another credential were refused", refused)
		}
		if n := u.Look(0).Paused; n > 10_000 {
			t.Errorf("%d pauses are kept", n)
		}
	})
}

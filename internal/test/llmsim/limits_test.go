package llmsim

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// The providers' reservations: "the question" has 12 bytes, 3 tokens and 3 for the message. The answer has 20 tokens, and the
// request allows 40.
func TestReservesAsTheProviderDoes(t *testing.T) {
	for _, x := range []struct {
		family         llm.Family
		reserved, left int64 // of 1000 tokens
	}{
		{llm.OpenAI, 40, 960},
		{llm.Responses, 40, 960},
		{llm.Anthropic, 6, 974},
		{llm.Gemini, 6, 994},
		{llm.Converse, 46, 974},
		{llm.Invoke, 46, 974},
	} {
		for _, stream := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := New(Config{Default: Model{OutputTokens: 20, Limits: Limits{Tokens: Rate{N: 1000, Per: 1000 * time.Hour}}}})
				res, _, err := send(t, inMemory(t, p), "http://sim", asks(x.family, stream))
				if err != nil || res.StatusCode != 200 {
					t.Fatalf("%s: %v, %v", x.family, res, err)
				}
				synctest.Wait()
				a := p.Log()[0]
				if a.Reserved != x.reserved || a.Input != 6 || a.Output != 20 || a.Outcome != Answered {
					t.Errorf("%s, stream %v: %+v, want %d reserved, 6 and 20 used", x.family, stream, a, x.reserved)
				}
				for _, m := range p.meters {
					if left := m.tokens.room(p.clock.Now()); left != x.left {
						t.Errorf("%s, stream %v: %d left, want %d", x.family, stream, left, x.left)
					}
				}
			})
		}
	}
}

// A call that a limit refuses takes nothing from the others, unless the provider counts such calls as requests.
func TestAllOrNone(t *testing.T) {
	for _, counted := range []bool{false, true} {
		p, s := start(t, Config{Default: Model{Limits: Limits{
			Requests: Rate{N: 3, Per: time.Hour}, Tokens: Rate{N: 50, Per: time.Hour}, CountRefused: counted,
		}}})
		var got []string
		for range 4 {
			res, _, err := send(t, s.client(), s.URL, asks(llm.OpenAI, false))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(res.StatusCode, p.Log()[p.Count(nil)-1].Reason))
		}
		want := "200, 429tokens per hour, 429tokens per hour, 429tokens per hour"
		if counted { // the last call finds neither; the requests take longer
			want = "200, 429tokens per hour, 429tokens per hour, 429"
		}
		if !strings.HasPrefix(strings.Join(got, ", "), want) {
			t.Errorf("counted %v: %v, want %s", counted, got, want)
		}
		for _, m := range p.meters {
			left, want := m.requests.room(p.clock.Now()), int64(2)
			if counted {
				want = 0
			}
			if left != want {
				t.Errorf("counted %v: %d requests left, want %d", counted, left, want)
			}
		}
	}
}

// A caller that waits as long as the hint is admitted, and not earlier. The record has the grants.
func TestHintsAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Default: Model{Limits: Limits{Requests: Rate{N: 20, Per: time.Second, Burst: 5}}}})
		client := inMemory(t, p)
		begin, sent := time.Now(), 0
		for granted := 0; granted < 60; {
			sent++
			res, _, err := send(t, client, "http://sim", asks(llm.OpenAI, false))
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode == 200 {
				granted++
				continue
			}
			ms, err := time.ParseDuration(res.Header.Get("Retry-After-Ms") + "ms")
			if err != nil || ms != 50*time.Millisecond {
				t.Fatalf("retry-after-ms %v, %v, want 50ms", ms, err)
			}
			time.Sleep(ms)
		}
		if took := time.Since(begin); took != 55*50*time.Millisecond {
			t.Errorf("60 calls took %v, want 2.75s", took)
		}
		if sent != 115 || p.Refused() != 55 {
			t.Errorf("%d sent, %d refused, want 115 and 55", sent, p.Refused())
		}
		if l := p.Busiest(time.Second, nil); l.Requests != 24 { // 5 + 19: the 20th arrives after the window
			t.Errorf("busiest second: %+v, want 24 requests", l)
		}
	})
}

func TestKeysAndModelsHaveLimitsOfTheirOwn(t *testing.T) {
	p, s := start(t, Config{
		Models: map[string]Model{"m": {Limits: Limits{Requests: Rate{N: 1, Per: time.Hour}}}, "n": {}},
		Keys:   map[string]Key{"k": {Name: "a"}, "q": {Name: "b", Limits: map[string]*Limits{"m": {Requests: Rate{N: 2, Per: time.Hour}}}}},
	})
	status := func(key, model string) int {
		a := asks(llm.OpenAI, false)
		a.header.Set("Authorization", "Bearer "+key)
		a.body = strings.Replace(a.body, `"m"`, `"`+model+`"`, 1)
		res, _, err := send(t, s.client(), s.URL, a)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	got := []int{status("k", "m"), status("k", "m"), status("k", "n"), status("q", "m"), status("q", "m"), status("q", "m"), status("x", "m"), status("k", "x")}
	if want := []int{200, 429, 200, 200, 200, 429, 401, 404}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if a := p.Log()[3]; a.Key != "b" {
		t.Errorf("key %q, want its name", a.Key)
	}
	p.SetModel("m", Model{})
	if got := status("k", "m"); got != 200 {
		t.Errorf("after SetModel: %d", got)
	}
}

// A request above the complete limit can never be admitted, and the response reports it.
func TestTooLargeForTheLimit(t *testing.T) {
	_, s := start(t, Config{Default: Model{Limits: Limits{Tokens: Rate{N: 10}}}})
	res, body, err := send(t, s.client(), s.URL, asks(llm.OpenAI, false))
	if err != nil || res.StatusCode != 429 || !strings.Contains(string(body), "Request too large") || res.Header.Get("Retry-After") != "" {
		t.Errorf("%v, %v, %s", res, err, body)
	}
}

func TestDailyQuotaIsToldFromTheMinute(t *testing.T) {
	for _, x := range []struct {
		family llm.Family
		want   string
	}{
		{llm.OpenAI, "requests per day (RPD)"},
		{llm.Anthropic, "requests per day"},
		{llm.Gemini, "GenerateRequestsPerDayPerProjectPerModel-FreeTier"},
		{llm.Converse, "Too many requests per day"},
	} {
		_, s := start(t, Config{Default: Model{Limits: Limits{RequestsPerDay: 1}}})
		for i := range 2 {
			res, body, err := send(t, s.client(), s.URL, asks(x.family, false))
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 && (res.StatusCode != 429 || !strings.Contains(string(body), x.want)) {
				t.Errorf("%s: %d %s, want %s", x.family, res.StatusCode, body, x.want)
			}
		}
	}
}

// With many concurrent callers and answers of any length, the grants in the record stay within the limits, however the family
// counts.
func TestManyCallersNeverGetMoreThanThereIs(t *testing.T) {
	for _, family := range []llm.Family{llm.OpenAI, llm.Anthropic, llm.Gemini, llm.Converse} {
		synctest.Test(t, func(t *testing.T) {
			p := New(Config{Default: Model{OutputTokens: 30, PerEvent: 3, Between: 20 * time.Millisecond, Limits: Limits{
				Requests: Rate{N: 10, Per: time.Second, Window: true}, Tokens: Rate{N: 600, Per: time.Second, Burst: 200},
			}}})
			client := inMemory(t, p)
			var wg sync.WaitGroup
			for range 25 {
				wg.Go(func() {
					for range 6 {
						if _, _, err := send(t, client, "http://sim", asks(family, true)); err != nil {
							t.Error(err)
						}
						time.Sleep(97 * time.Millisecond)
					}
				})
			}
			wg.Wait()
			client.CloseIdleConnections()
			l, refused := p.Busiest(time.Second, nil), p.Refused()
			if l.Requests > 10 || l.Reserved > 800 || l.Requests == 0 {
				t.Errorf("%s: busiest second %+v", family, l)
			}
			granted := p.Count(func(a Attempt) bool { return a.Outcome == Answered && a.Output == 30 })
			if granted+refused != 150 || granted < 10 || p.Open() != 0 {
				t.Errorf("%s: %d granted, %d refused, %d open", family, granted, refused, p.Open())
			}
		})
	}
}

package websocket

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

const ask = `{"type":"response.create"}`

func created(id string) string {
	return `{"type":"response.created","event_id":"e","response":{"id":"` + id + `","status":"in_progress","usage":null}}`
}

func done(id string, total int) string {
	return fmt.Sprintf(`{"type":"response.done","response":{"id":%q,"status":"completed","usage":{"total_tokens":%d,"input_tokens":%d,"output_tokens":10}}}`, id, total, total-10)
}

func minutely(n int64) limit.Limit {
	return limit.Limit{Name: "tokens", Unit: totalTokens, Rate: bucket.Rate{Amount: n, Per: time.Minute, Burst: n}}
}

// spoken is a server that sends what it is given, one message for each that comes.
func spoken(script ...string) func(*ws.Conn) {
	return func(c *ws.Conn) {
		for _, text := range script {
			if _, _, err := c.Read(context.Background()); err != nil {
				return
			}
			for part := range strings.SplitSeq(text, "\n") {
				_ = c.Write(context.Background(), ws.MessageText, []byte(part))
			}
		}
		ended(c)
	}
}

// left is what is left of the tokens.
func left(t *testing.T, u *weir.Upstream) int64 {
	t.Helper()
	var p weir.Permit
	c := weir.Call{Operation: Response, Cost: usage{}.cost(0), Part: true}
	if err := u.Admit(t.Context(), &c, &p, 0); err != nil {
		t.Fatal(err)
	}
	defer p.Report(okay)
	return p.Levels()[0].Level.Left
}

func TestResponsesAreChargedWhenTheyBeginAndSettledAtTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{Limits: []limit.Limit{minutely(6000)}}, Config{Realtime: true}, spoken(created("r1"), done("r1", 2500), created("r2")))
		defer s.Close()
		c := s.dial(t, "a")
		write(t, c, ask)
		_ = read(t, c)
		if got := left(t, s.weir); got != 6000-first.Total {
			t.Errorf("once a response has begun %d are left", got)
		}
		write(t, c, `{"type":"input_audio_buffer.append","audio":""}`) // costs none
		_ = read(t, c)
		if got := left(t, s.weir); got != 3500 {
			t.Errorf("at its end %d are left", got)
		}
		write(t, c, `{"type":"input_audio_buffer.append"}`)
		_ = read(t, c)
		if got := left(t, s.weir); got != 1000 {
			t.Errorf("once another has begun, which is likely to use as much, %d are left", got)
		}
		write(t, c, ask)
		if got := read(t, c); !strings.Contains(got, `"type":"error"`) || !strings.Contains(got, `"event_id":`) || !strings.Contains(got, "RATE_LIMIT_EXCEEDED") {
			t.Errorf("a request for a third: %s", got)
		}
		_ = c.CloseNow()
		s.last(t, 1)
		if got := left(t, s.weir); got < 1000 || got > 1010 { // 100 come a second
			t.Errorf("a response whose end nobody heard has used what it was charged: %d are left", got)
		}
	})
}

// A response that nobody asked for, as the server heard the speaker pause, cannot be refused: it is owed.
func TestResponsesThatNobodyAskedForAreOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{Limits: []limit.Limit{minutely(600)}}, Config{Realtime: true}, spoken(created("r1")+"\n"+done("r1", 600)+"\n"+created("r2")+"\n"+done("r2", 1200)))
		defer s.Close()
		c := s.dial(t, "a")
		write(t, c, `{"type":"input_audio_buffer.append"}`)
		for range 4 {
			_ = read(t, c)
		}
		begin := time.Now()
		for left(t, s.weir) < 600 {
			<-time.After(time.Second)
		}
		if took := time.Since(begin); took < 179*time.Second || took > 182*time.Second { // 600 and 1200 at 600 a minute
			t.Errorf("paid back after %v", took)
		}
		_ = c.CloseNow()
	})
}

func TestWhatTheServerSaysOfItsLimitsHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := minutely(100000)
		told.Advertised = "tokens"
		hint := `{"type":"rate_limits.updated","rate_limits":[{"name":"tokens","limit":50000,"remaining":0,"reset_seconds":30.5}]}` // and nothing of requests
		s := newSite(t, weir.Policy{Limits: []limit.Limit{told}}, Config{Realtime: true}, spoken(hint, created("r1")+"\n"+done("r1", 100)))
		defer s.Close()
		c := s.dial(t, "a")
		write(t, c, ask)
		_ = read(t, c)
		write(t, c, ask)
		if got := read(t, c); !strings.Contains(got, "RATE_LIMIT_EXCEEDED") {
			t.Errorf("with nothing left: %s", got)
		}
		heard := listen(c)
		<-time.After(time.Minute)
		write(t, c, ask)
		if got := <-heard.said; got != created("r1") {
			t.Errorf("later: %s", got)
		}
		_ = c.CloseNow()
	})
}

// Who says that a response used less than nothing is not believed: the next one would cost as much, and be refused for ever.
func TestNobodyUsesLessThanNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{Limits: []limit.Limit{minutely(6000)}}, Config{Realtime: true}, spoken(created("r1")+"\n"+done("r1", -2500), created("r2")))
		defer s.Close()
		c := s.dial(t, "a")
		write(t, c, ask)
		_, _ = read(t, c), read(t, c)
		write(t, c, ask)
		if got := read(t, c); got != created("r2") {
			t.Errorf("got %s", got)
		}
		if got := left(t, s.weir); got > 6000 {
			t.Errorf("%d are left of 6000", got)
		}
		_ = c.CloseNow()
	})
}

func TestEventsThatAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd := []string{`{"type":"response.created"}`, `{"type":"response.done"}`, `{"type":"response.done","response":7}`, `{"type":"rate_limits.updated","rate_limits":[{"name":"tokens","limit":-1,"remaining":5,"reset_seconds":1e300}]}`, `{"type":"response.created`}
		s := newSite(t, weir.Policy{Limits: []limit.Limit{minutely(100000)}}, Config{Realtime: true}, spoken(strings.Join(odd, "\n")))
		defer s.Close()
		c := s.dial(t, "a")
		write(t, c, "x")
		for _, want := range odd {
			if got := read(t, c); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		_ = c.CloseNow()
	})
}

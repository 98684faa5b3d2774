package play_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/play"
)

func read(t *testing.T, text string) *play.Story {
	t.Helper()
	s, err := play.Read("story.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func nothing(string) {}

const short = `story: short
machine: {does: 60/s, takes: 50ms}
callers: {ask: 30/s, patience: 1s}
trouble: [{at: 5s, for: 2s, what: stall}]
length: 20s
`

// A story with the same seed has the same result, also with several processes.
func TestStoryRepeatsWithItsSeed(t *testing.T) {
	for _, text := range []string{short, strings.Replace(short, "stall", "store-away", 1)} {
		var all [2][]byte
		for i := range all {
			target := &play.Target{Name: "api", Policy: weir.Policy{Limits: rate(40, 5)}, Store: &play.Store{Latency: time.Millisecond}}
			r, err := target.Play(t.Context(), *read(t, text), 7, 1, nothing)
			if err != nil {
				t.Fatal(err)
			}
			if all[i], err = json.Marshal(r); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(all[0], all[1]) {
			t.Errorf("got %s\nand %s", all[0], all[1])
		}
	}
}

func TestExpectationsAreCheckedWithEachSeed(t *testing.T) {
	const expect = "expect: {recovered: < 5s, answered_before: '> 99%', sent: < 2, openings: 0, refused_in_calm: 0, answered: < 10%}\n"
	target := &play.Target{Name: "api", Policy: *bounded}
	r, err := target.Play(t.Context(), *read(t, short+expect), 1, 3, nothing)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		if c.Holds != (c.Figure != "answered") {
			t.Errorf("seed %d: %s: %s, found %s, holds: %v", c.Seed, c.Figure, c.Bound, c.Found, c.Holds)
		}
	}
	if len(r.Checks) != 18 || r.Holds() {
		t.Errorf("%d checks, holds: %v; want 18 and false", len(r.Checks), r.Holds())
	}
}

// A story whose context ends is scored until then, and its expectations are not checked.
func TestInterruptedStoryIsScoredUntilThen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := (&play.Target{Name: "api"}).Play(ctx, *read(t, short+"expect: {answered: '> 99%'}\n"), 1, 1, func(text string) {
		if strings.Contains(text, "with the file") {
			cancel()
		}
	})
	if err != nil || r.Direct.EndedMS != 0 || r.Weir.EndedMS != 1000 || len(r.Checks) != 0 || !strings.Contains(r.Verdict, "interrupted after 1 s") {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A wrong story is refused with its line, its field and a correction.
func TestWrongStoriesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "is empty",
		"upstreams: {api: {url: 'http://x'}}": "is a configuration, not a story; pass a configuration with --config",
		"a: 1":                                "this is not a story; begin the file with story: and a name",
		"just words":                          "want fields",
		"story: a\nexpect:\n  answered: > 9%": "put a text that begins with > into quotes",
		"story: a\n\tb: c":                    "broken YAML",
		"story: a\ntroubles: []":              `troubles: unknown field "troubles"; did you mean trouble?`,
		"story: a\ntrouble: [{at: 5s, for: 1s, what: stal}]":                                  `trouble[0].what: unknown trouble "stal"; did you mean stall?`,
		"story: a\ntrouble: [{at: 5s, what: stall}]":                                          "trouble[0].for: is missing",
		"story: a\ntrouble: [{at: 5s, for: 1h, what: stall}]":                                 "no time remains to measure the recovery",
		"story: a\ntrouble: [{at: 5s, for: 1s, what: slow}]":                                  "want a factor from 1x to 1000x",
		"story: a\ntrouble: [{at: 5s, what: flush}]":                                          "flush needs a machine with keys",
		"story: a\ntrouble: [{at: 5s, for: 9s, what: stall}, {at: 6s, for: 1s, what: stall}]": "begins before",
		"story: a\nlength: forever":                                                           `length: "forever": is not a duration`,
		"story: a\nlength: 100h":                                                              "must be from 1s to 24h0m0s",
		"story: a\nmachine: {does: quickly}":                                                  `machine.does: "quickly": is not a rate`,
		"story: a\ncallers: {client: curl}":                                                   "callers.client: unknown value",
		"story: a\nexpect: {recovered: soon}":                                                 `expect.recovered: "soon": is not a bound`,
		"story: a\nexpect: {answered: '> 900%'}":                                              "must be from 0% to 100%",
		"story: a\nexpect: {answerd: '> 9%'}":                                                 `unknown figure "answerd"; did you mean answered?`,
		"story: a\nexpect: {over_limit: 0}":                                                   "over_limit needs processes",
	} {
		_, err := play.Read("story.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "story.yaml:") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// A story that would take too much time or memory is refused before it is played.
func TestHugeStoriesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"story: a\ncallers: {ask: 1000000000/s}":                                                       "makes 1.2e+11 calls: want at most 5000000",
		"story: a\nlength: 24h\ncallers: {ask: 300/s}":                                                 "want at most 5000000; shorten the story or lower ask",
		"story: a\ncallers: {ask: 1000/s, patience: 10m}":                                              "callers wait at the same time: want at most 100000",
		"story: a\nmachine: {does: 1000000/s, takes: 1m}\ncallers: {ask: 1/s}":                         "workers",
		"story: a\ncallers: {ask: 100/s}\ntrouble: [{at: 5s, for: 1m, what: flood 1000x}]\nlength: 2m": "want at most",
		"story: a\ncallers: {operation: nope}":                                                         `has no operation "nope"`,
	} {
		_, err := (&play.Target{Name: "api"}).Play(t.Context(), *read(t, text), 1, 1, nothing)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `story "a"`) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestWrittenStoryReadsBack(t *testing.T) {
	s := read(t, strings.Replace(short, "30/s", "7/min", 1))
	s.Callers.Client, s.Upstream = "sdk", "api"
	if got := read(t, s.Write()); !reflect.DeepEqual(got, s) {
		t.Errorf("got %+v, want %+v, from\n%s", got, s, s.Write())
	}
}

// The machine's capacity and the load follow the lowest limit of the file, and the report states them.
func TestAssumptionsFollowTheFile(t *testing.T) {
	tokens := rate(9, 9)[0]
	tokens.Name, tokens.Unit = "tokens", "tokens"
	target := &play.Target{Name: "api", Policy: weir.Policy{Limits: append(rate(100, 10), tokens)}}
	s, assumed, err := target.Complete(*read(t, "story: a"))
	if err != nil || s.Machine.Does != 200 || s.Callers.Ask != 80 || !strings.Contains(strings.Join(assumed, "\n"), "does 200 calls/s, twice the limit all") {
		t.Errorf("does %v, ask %v, assumed %q, %v", s.Machine.Does, s.Callers.Ask, assumed, err)
	}
	if got := target.Unplayed(&s); len(got) != 1 || !strings.Contains(got[0], "limits.tokens (counts tokens") {
		t.Errorf("not played: %q", got)
	}
	if s, assumed, err = target.Complete(*read(t, "story: a\nmachine: {does: 50/s, takes: 10ms}\ncallers: {ask: 40/s, patience: 2s, client: none}")); err != nil || len(assumed) != 0 || s.Machine.Does != 50 {
		t.Errorf("assumed %q, %v", assumed, err)
	}
}

// A machine with a limit throttles, and says when to come back.
func TestMachineThrottles(t *testing.T) {
	s := read(t, "story: a\nmachine: {limit: 10/s burst 1, does: 100/s}\ncallers: {ask: 20/s}\nlength: 10s")
	r, err := (&play.Target{Name: "api"}).Play(t.Context(), *s, 1, 1, nothing)
	if err != nil || r.Direct.Throttled == 0 || r.Weir.Throttled == 0 || r.Weir.Throttled >= r.Direct.Throttled {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err = (&play.Target{Name: "api", Policy: weir.Policy{Limits: rate(10, 1)}}).Play(t.Context(), *s, 1, 1, nothing); err != nil || r.Weir.Throttled != 0 {
		t.Errorf("with the limit: got %+v, %v", *r.Weir, err)
	}
}

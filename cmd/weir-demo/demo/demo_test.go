package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/play"
	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// The results hold with any seed.
func TestTheStories(t *testing.T) {
	for seed := range uint64(campaign.Of(1, 8)) {
		r := make(Result)
		if err := (Config{Out: io.Discard, Seed: seed}).virtual(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for name, w := range r {
			claims(t, name, w.Direct, w.Weir)
		}
	}
}

func claims(t *testing.T, name string, direct, weir *play.Score) {
	t.Helper()
	wasted := func(s *play.Score) float64 { return float64(s.Wasted) / float64(s.Useful+s.Wasted) }
	if direct.Calls != weir.Calls || direct.RecoveredMS != nil || wasted(direct) < 0.5 || direct.Answered > 0.4 || direct.Quiet > 0.05 {
		t.Errorf("%s, directly: %+v", name, *direct)
	}
	if weir.RecoveredMS == nil || *weir.RecoveredMS > 4000 || wasted(weir) > 0.02 || weir.Answered < 2*direct.Answered {
		t.Errorf("%s, through weir: %+v", name, *weir)
	}
	switch name {
	case "stall":
		if weir.Answered < 0.9 {
			t.Errorf("%s, through weir: %.3f answered", name, weir.Answered)
		}
	case "flood":
		loud := play.Tenants[3]
		if weir.Quiet < 0.995 || weir.Tenants[loud] < 0.2 || weir.Tenants[loud] > 0.5 {
			t.Errorf("%s, through weir: %.3f of the quiet ones' calls answered, %.3f of the other's", name, weir.Quiet, weir.Tenants[loud])
		}
	}
}

// The result of the live part holds with any seed if the machine keeps time.
func TestTheLiveStoryInVirtualTime(t *testing.T) {
	s := liveStory(20 * time.Second)
	up, err := scaled(s)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(campaign.Of(10, 40)) {
		direct, err1 := s.Play(t.Context(), seed, nil, nil)
		through, err2 := s.Play(t.Context(), seed, &up.Policy, nil)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if w := through; w.RecoveredMS == nil || *w.RecoveredMS > 5000 || w.Answered < 0.9 {
			t.Errorf("seed %d, through weir: %+v", seed, *w)
		}
		if d := direct; d.RecoveredMS != nil || d.Answered > 0.4 {
			t.Errorf("seed %d, directly: %+v", seed, *d)
		}
	}
}

// A story of a few seconds must not print never.
func TestSaysHowLongItWasWatched(t *testing.T) {
	s := liveStory(20 * time.Second)
	if got := s.Table(&play.Score{}, &play.Score{RecoveredMS: new(int64(1500))}); !strings.Contains(got, "not in 13 s") || !strings.Contains(got, "1.5 s") || strings.Contains(got, "never") {
		t.Errorf("got %s", got)
	}
}

// In the live part a busy machine may lose calls, but the story runs to its end and makes the same calls both ways.
func TestLive(t *testing.T) {
	t.Parallel()
	r := make(Result)
	if err := (Config{Out: io.Discard, Live: 6 * time.Second}).live(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if live := r["live"]; live.Direct.Calls == 0 || live.Direct.Calls != live.Weir.Calls {
		t.Errorf("got %+v and %+v", *live.Direct, *live.Weir)
	}
}

func TestPictureFitsAScreen(t *testing.T) {
	var out bytes.Buffer
	if err := Run(t.Context(), Config{Out: &out}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"└ stall", "└ flood", "dogwood", "never", "preset: http", "through weir"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("there are colours")
	}
}

func TestEndsWhenAsked(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := Run(ctx, Config{Out: io.Discard, Live: time.Minute}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestStaysUntilAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out := &watched{until: "Ctrl-C", then: cancel}
	if err := (Config{Out: out, Live: 6 * time.Second, Stay: true}).live(ctx, make(Result)); err != nil || !strings.Contains(out.text.String(), "curl -i http://127.0.0.1:") {
		t.Errorf("got %v and %s", err, out.text.String())
	}
}

// A watched calls then after a text was written.
type watched struct {
	text  strings.Builder
	until string
	then  func()
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.text.Write(b)
	if strings.Contains(w.text.String(), w.until) {
		w.then()
	}
	return n, err
}

func TestRefusesALiveOfNoLength(t *testing.T) {
	for _, d := range []time.Duration{-1, time.Second, time.Hour} {
		if err := (Config{Live: d}).Validate(); err == nil {
			t.Errorf("%v was taken", d)
		}
	}
}

package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// Emptied returns an Option with a function that makes a store lose all data of a group, like a server that
// restarts without its data. It applies to stores that grant parts and are Driven.
func Emptied(empty func(t testing.TB, group string)) Option {
	return func(s *suite) { s.empty = empty }
}

// emptied checks that a store without data treats all parts as out. Processes show their parts with their beats.
// The store grants nothing from the remainder, which no process has shown.
func emptied(w *world) {
	a, b, silent := w.joins("a"), w.joins("b"), w.joins("silent")
	for range 30 { // a store grants a part only after some seconds, and parts grow in turns
		for _, m := range []*believer{a, b, silent} {
			m.beat()
		}
		w.pass(300 * time.Millisecond)
	}
	if a.Part == 0 || b.Part == 0 || silent.Part == 0 || a.Part+b.Part+silent.Part > fleet.Whole {
		w.Fatalf("parts of %d, %d and %d of %d", a.Part, b.Part, silent.Part, fleet.Whole)
	}
	w.empty(w, w.group)
	held := map[*believer]int64{a: a.Part, b: b.Part}
	unknown := int64(fleet.Whole)
	for _, m := range []*believer{a, b} {
		s := m.beat()
		if unknown -= held[m]; s.Unknown != unknown {
			w.Errorf("%s showed a part of %d: %d are unknown, want %d", m.Client, held[m], s.Unknown, unknown)
		}
		if s.Part == 0 || s.Part > held[m] {
			w.Errorf("%s showed a part of %d and has %d", m.Client, held[m], s.Part)
		}
	}
	late := w.joins("late")
	late.Part, late.Until = fleet.Whole, w.now().UnixMicro()-1
	if s := late.beat(); s.Unknown != unknown || s.Part != 0 {
		w.Errorf("a part whose time is over: %+v; want %d unknown, and none", s, unknown)
	}
	staysUnknown(w, unknown, a, b, late, w.joins("stranger"))
	if s := silent.beat(); s.Unknown != unknown-silent.shown {
		w.Errorf("who was silent showed its part of %d: %d are unknown, want %d", silent.shown, s.Unknown, unknown-silent.shown)
	}
}

// staysUnknown checks that the store grants no part that is still unknown to the members.
func staysUnknown(w *world, unknown int64, members ...*believer) {
	for range 30 {
		for _, m := range members {
			s := m.beat()
			all := s.Unknown
			for _, o := range members {
				all += o.Part
			}
			if s.Unknown != unknown || all > fleet.Whole {
				w.Fatalf("%s: parts and what is unknown are %d; %d are unknown, want %d", m.Client, all, s.Unknown, unknown)
			}
		}
		w.pass(300 * time.Millisecond)
	}
}

// A believer is a process that sends beats and accepts every answer.
type believer struct {
	fleet.Beat
	w     *world
	shown int64 // the part in its latest beat
}

func (w *world) joins(name string) *believer {
	return &believer{Beat: fleet.Beat{Client: name, Silence: 1e6, Life: 60e6, Wish: 100}, w: w}
}

func (m *believer) beat() fleet.Standing {
	m.w.Helper()
	m.Seq++
	m.shown = m.Part
	s := m.w.beat(m.Beat)
	m.Ack, m.Gen, m.Part, m.Until = s.No, s.Gen, s.Part, s.Until
	return s
}

// CompareEmptied drives a store through random beats of some processes, and clears its memory now and then. It
// fails at the first answer that differs from the answer of fleet.Members. It returns how often a process showed a
// part to an emptied store.
func CompareEmptied(t testing.TB, s fleet.Store, empty func(t testing.TB, group string), advance func(d time.Duration), seed uint64, steps int) (shown int) {
	t.Helper()
	m := &model{now: func() (time.Time, error) { _, now, err := s.Load(context.Background(), "clock", nil); return now, err }}
	h := newHistory(s, m, seed)
	h.brisk = true
	for step := range steps {
		if i := h.rng.IntN(60); i == 0 {
			empty(t, h.group)
			m.members = nil
		} else if i < 15 {
			advance(h.pause())
		}
		if err := h.beat(); err != nil {
			t.Fatalf("seed %#x, step %d: %v", seed, step, err)
		}
		shown = m.shown
	}
	return shown
}

// A model is the members of one group. At first it does not know which parts are out.
type model struct {
	fleet.Store // nil: a model only answers beats
	now         func() (time.Time, error)
	members     *fleet.Members
	shown       int
}

func (m *model) Beat(_ context.Context, b *fleet.Beat) (fleet.Standing, error) {
	now, err := m.now()
	if err != nil {
		return fleet.Standing{}, err
	}
	if m.members == nil {
		m.members = fleet.NewMembers(now.UnixMicro(), false)
	}
	m.members.Turn(now.UnixMicro())
	before := m.members.Unknown
	s := m.members.Beat(now.UnixMicro(), b)
	if s.Unknown < before {
		m.shown++
	}
	return s, nil
}

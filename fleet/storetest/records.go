package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

func (c *client) swap(r fleet.Record) (fleet.Record, bool) {
	c.w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	now, ok, err := c.store.Swap(ctx, c.w.group, r)
	if err != nil {
		c.w.Fatalf("swap: %v", err)
	}
	return now, ok
}

// made writes a record that the store must accept.
func (c *client) made(r fleet.Record) fleet.Record {
	c.w.Helper()
	now, ok := c.swap(r)
	if !ok {
		c.w.Fatalf("swap of %q at version %d refused; it has %d", r.Name, r.Version, now.Version)
	}
	if now.Version <= r.Version || now.Version <= 0 || now.Name != r.Name || !bytes.Equal(now.Value, r.Value) {
		c.w.Fatalf("swap of %+v returned %+v", r, now)
	}
	return now
}

func (c *client) load(names ...string) []fleet.Record {
	c.w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, _, err := c.store.Load(ctx, c.w.group, names)
	if err != nil {
		c.w.Fatalf("load: %v", err)
	}
	if len(all) != len(names) {
		c.w.Fatalf("%d records for %d names", len(all), len(names))
	}
	for i, r := range all {
		if r.Name != names[i] {
			c.w.Fatalf("record %d is %q, want %q", i, r.Name, names[i])
		}
	}
	return all
}

func recordVersions(w *world) {
	if r := w.load("a")[0]; r.Version != 0 || len(r.Value) != 0 {
		w.Fatalf("a record that was never written is %+v", r)
	}
	if r, ok := w.swap(fleet.Record{Name: "a", Version: 7, Value: []byte("x"), Keep: time.Hour}); ok || r.Version != 0 {
		w.Errorf("version 7 of nothing: %v, %+v", ok, r)
	}
	first := w.made(fleet.Record{Name: "a", Value: []byte("one"), Keep: time.Hour})
	other := w.another()
	r, ok := other.swap(fleet.Record{Name: "a", Value: []byte("mine"), Keep: time.Hour})
	w.loses("created twice", r, ok, first.Version, "one")
	second := other.made(fleet.Record{Name: "a", Version: first.Version, Value: []byte("two"), Keep: time.Hour})
	r, ok = w.swap(fleet.Record{Name: "a", Version: first.Version, Value: []byte("late"), Keep: time.Hour})
	w.loses("swapped a version that is gone", r, ok, second.Version, "two")
	w.made(fleet.Record{Name: "b", Value: []byte("b"), Keep: time.Hour})
	all := w.load("b", "none", "a")
	if string(all[0].Value) != "b" || all[1].Version != 0 || string(all[2].Value) != "two" || all[2].Version != second.Version {
		w.Errorf("loaded %+v", all)
	}
	if r := newWorld(w.T, w.suite).load("a")[0]; r.Version != 0 {
		w.Errorf("another group has %+v", r)
	}
}

// loses checks the answer to a swap that came too late: it must contain the present record.
func (w *world) loses(what string, r fleet.Record, ok bool, version int64, value string) {
	w.Helper()
	if ok || r.Version != version || string(r.Value) != value {
		w.Errorf("%s: %v, %+v; want version %d, %q", what, ok, r, version, value)
	}
}

// shortly returns a record with a lifetime of 100 ms.
func shortly(name, value string) fleet.Record {
	return fleet.Record{Name: name, Value: []byte(value), Keep: 100 * time.Millisecond}
}

func recordsExpire(w *world) {
	first := w.made(shortly("a", "one"))
	w.made(fleet.Record{Name: "b", Value: []byte("b"), Keep: time.Hour})
	for renewed := false; !renewed; { // the record may have expired before the second swap
		kept := w.made(shortly("c", "one"))
		kept.Value, kept.Keep = []byte("two"), time.Hour
		_, renewed = w.swap(kept)
	}
	w.gone("a")
	if r, ok := w.swap(fleet.Record{Name: "a", Version: first.Version, Value: []byte("x"), Keep: time.Hour}); ok || r.Version != 0 {
		w.Errorf("a record that was forgotten was swapped: %v, %+v", ok, r)
	}
	w.another().made(shortly("a", "three"))
	if all := w.load("b", "c"); string(all[0].Value) != "b" || string(all[1].Value) != "two" {
		w.Errorf("records that are kept longer: %+v", all)
	}
}

// gone waits until a record with a lifetime of 100 ms has expired, for at most about two seconds more.
func (w *world) gone(name string) {
	w.Helper()
	w.pass(101 * time.Millisecond)
	for range 100 {
		if w.load(name)[0].Version == 0 {
			return
		}
		w.pass(20 * time.Millisecond)
	}
	w.Fatalf("record %q is still there", name)
}

// versionsNeverReturn checks that a record that expired and was created again gets a new version. A process that
// slept meanwhile must not mistake it for the record that it knows.
func versionsNeverReturn(w *world) {
	versions := make(map[int64]bool)
	for range 3 {
		r := w.made(fleet.Record{Name: "a", Keep: time.Hour})
		if versions[r.Version] {
			w.Fatalf("version %d came again", r.Version)
		}
		versions[r.Version] = true
		r.Keep = 100 * time.Millisecond
		versions[w.made(r).Version] = true
		w.gone("a")
	}
	if len(versions) != 6 {
		w.Errorf("%d versions of 6 swaps", len(versions))
	}
}

func recordContents(w *world) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i, value := range [][]byte{nil, {}, {0}, all, []byte("{}\r\n\"'`"), bytes.Repeat(all, 16)} {
		name := fmt.Sprint("r", i)
		w.made(fleet.Record{Name: name, Value: value, Keep: time.Hour})
		if got := w.load(name)[0]; !bytes.Equal(got.Value, value) || got.Version == 0 {
			w.Errorf("%d bytes came back as %d, version %d", len(value), len(got.Value), got.Version)
		}
	}
	mine := []byte("mine")
	w.made(fleet.Record{Name: "mine", Value: mine, Keep: time.Hour})
	mine[0] = 'x'
	if got := w.load("mine")[0]; string(got.Value) != "mine" {
		w.Errorf("the store kept a reference to the caller's bytes: %q", got.Value)
	} else {
		got.Value[0] = 'y'
	}
	if got := w.load("mine")[0]; string(got.Value) != "mine" {
		w.Errorf("the store lent out its own bytes: %q", got.Value)
	}
}

func swappersCount(w *world) {
	clients := [3]*client{w.client, w.another(), w.another()}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() { clients[i%3].count("n") })
	}
	wg.Wait()
	if got := string(w.load("n")[0].Value); got != "64" {
		w.Errorf("64 swappers counted to %q", got)
	}
}

// count adds one to the number in a record. Of concurrent swaps, one always succeeds, so all callers finish.
func (c *client) count(name string) {
	swap := func(r fleet.Record) (fleet.Record, bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return c.store.Swap(ctx, c.w.group, r)
	}
	r := fleet.Record{Name: name}
	for ok := false; !ok; {
		n, _ := strconv.Atoi(string(r.Value))
		r.Value, r.Keep = []byte(strconv.Itoa(n+1)), time.Hour
		var err error
		if r, ok, err = swap(r); err != nil {
			c.w.Errorf("swap: %v", err)
			return
		}
	}
}

func beats(w *world) {
	seq := int64(0)
	beat := func(name string, silence time.Duration, want int64) {
		w.Helper()
		seq++
		b := fleet.Beat{Group: w.group, Client: name, Seq: seq, Silence: silence.Microseconds(), Life: time.Hour.Microseconds()}
		if got := w.beat(b); got.Alive != want {
			w.Errorf("beat of %q: %d alive, want %d", name, got.Alive, want)
		}
	}
	beat("a", time.Hour, 1)
	beat("b", time.Hour, 2)
	beat("a", time.Hour, 2)
	beat("c\x00{}\n", 300*time.Millisecond, 3)
	elsewhere := newWorld(w.T, w.suite)
	if s := elsewhere.beat(fleet.Beat{Client: "a", Seq: 1, Silence: 1e6, Life: 1e6}); s.Alive != 1 {
		w.Errorf("another group has %d clients", s.Alive)
	}
	w.pass(1200 * time.Millisecond)
	beat("d", time.Second, 3)
}

// beat sends a beat in the world's group.
func (w *world) beat(b fleet.Beat) fleet.Standing {
	w.Helper()
	b.Group = w.group
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := w.store.Beat(ctx, &b)
	if err != nil {
		w.Fatalf("beat %+v: %v", b, err)
	}
	return s
}

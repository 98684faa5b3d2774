//go:build unix

package fleettest

import (
	"bytes"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

var full = flag.Bool("full", false, "every case for ten seconds, one after the other, and many histories of presets")

// On a busy machine processes and stores may respond too late. The used share of a limit then depends on the machine.
var judgeUsed = flag.Bool("used", false, "ask how much of a limit is used, too: of a machine that does nothing else")

const (
	members = 8
	callers = 8
)

// long reports whether to test all disturbances.
func long() bool { return *full || campaign.Long() }

// lasts returns the duration of a case.
func lasts() time.Duration {
	switch {
	case *full:
		return 10 * time.Second
	case long():
		return 6 * time.Second
	}
	return 3 * time.Second
}

// beside runs a case in parallel with others, because it mostly waits.
func beside(t *testing.T) {
	if !*full {
		t.Parallel()
	}
}

var shapes = []limit.Limit{
	{Name: "bucket", Rate: bucket.Rate{Amount: 100, Per: time.Second}},
	{Name: "rolling", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: time.Second}},
	{Name: "fixed", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Second},
}

// each runs a test for every shape, with and without leases.
func each(t *testing.T, test func(t *testing.T, o order)) {
	for i, l := range shapes {
		for name, lease := range map[string]time.Duration{"leased": 0, "asked": -1} {
			t.Run(l.Name+" "+name, func(t *testing.T) {
				beside(t)
				group := fmt.Sprintf("%s %s %d", l.Name, name, time.Now().UnixNano())
				test(t, order{Group: group, Limit: l, Shape: i, Lease: lease, Callers: callers, Lasts: lasts()})
			})
		}
	}
}

// judge checks every window, and the used share of the limit.
func judge(t *testing.T, o order, all []grant, share float64) {
	t.Helper()
	var alone int
	for _, g := range all {
		if g.alone {
			alone++
		}
	}
	if len(all) == 0 && share == 0 { // the machine kept the store from responding in time
		t.Log("nothing was let go")
		return
	}
	if len(all) == 0 {
		t.Fatal("nothing was let go")
	}
	offset := time.Now().Add(-monotonic())
	wall := func(at time.Duration) time.Time { return offset.Add(at) }
	worst, where := over(o.Limit, all, wall)
	heard, late := asHeard(all)
	asItSeems, _ := over(o.Limit, heard, wall)
	used := float64(atTheEnd(all, lasts())) / (o.Limit.PerSecond() * lasts().Seconds())
	t.Logf("%s: %d let go in %v, %.1f%% of the rate in the last %v; %d while the store was away; %d over; callers went on %v later at most, %d over by that",
		o.Group, len(all), o.Lasts, 100*used, lasts(), alone, worst, late, asItSeems)
	for _, g := range all {
		if g.heard < g.at-time.Millisecond { // the clocks agree better than that
			t.Fatalf("a caller went on at %v, before %v when it might", g.heard, g.at)
		}
	}
	if worst > 0 {
		t.Errorf("%d over: %s", worst, where)
	}
	if used < share {
		t.Errorf("%.1f%% used, want %.0f%%", 100*used, 100*share)
	}
}

// atTheEnd counts the grants in the last part of a run.
func atTheEnd(all []grant, part time.Duration) (n int) {
	var last time.Duration
	for _, g := range all {
		last = max(last, g.at)
	}
	for _, g := range all {
		if g.at > last-part {
			n++
		}
	}
	return n
}

// together runs processes in parallel and collects their grants.
func together(t *testing.T, o order, skew func(i int) time.Duration) (all []grant) {
	t.Helper()
	var dones []<-chan []grant
	for i := range members {
		o := o
		if skew != nil {
			o.Skew = skew(i)
		}
		_, done := spawn(t, o)
		dones = append(dones, done)
	}
	for _, done := range dones {
		all = append(all, <-done...)
	}
	return all
}

// usedShare returns the required share. Without -used any grant is enough.
func usedShare() float64 {
	if *judgeUsed {
		return 0.98
	}
	return 0
}

func TestEightProcessesOnRedis(t *testing.T) {
	redis := servers.Redis(t)
	each(t, func(t *testing.T, o order) {
		o.Redis = redis.URL()
		known(t, redis.URL(), o.Group)
		judge(t, o, together(t, o, nil), usedShare())
	})
}

// known initializes a group in the store.
func known(t *testing.T, url, group string) {
	t.Helper()
	s, err := redisstore.Open(url, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; { // a busy machine may not connect in time
		err := s.Init(t.Context(), group)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestEightProcessesOnDynamoDB(t *testing.T) {
	server := dynalite(t)
	each(t, func(t *testing.T, o order) {
		o.onDynamo(server)
		judge(t, o, together(t, o, nil), usedShare())
	})
}

// dynalite starts a server with the table.
func dynalite(t *testing.T) *servers.Server {
	server := servers.Dynalite(t)
	s, err := dynamo(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server
}

func (o *order) onDynamo(server *servers.Server) {
	o.Dynamo, o.Guard = server.Endpoint(), 100*time.Millisecond
	if !long() {
		return
	}
	o.Lasts += 2 * time.Second // a process learns the server's clock first
	if o.Limit.Shape == limit.Rolling {
		o.Guard = 15 * time.Millisecond // only the rest of a one-second window after the guard can be used
	}
}

// Stores that one process can hold: eight fleets in one process.
func TestEightFleetsOnOneStore(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) fleet.Store{
		"memory": func(*testing.T) fleet.Store { return fleet.NewMemory(nil) },
		"file": func(t *testing.T) fleet.Store {
			s, err := filestore.Open(filepath.Join(t.TempDir(), "weir.db"), filestore.Options{NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, o order) {
				s := open(t)
				var wg sync.WaitGroup
				outs := make([]bytes.Buffer, members)
				for i := range members {
					wg.Go(func() {
						if err := o.run(keepOpen{s}, guards[name], 0, &outs[i]); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				var all []grant
				for i := range outs {
					all = append(all, read(&outs[i])...)
				}
				judge(t, o, all, usedShare())
			})
		})
	}
}

// guards are the guards of weir serve for each kind of store.
var guards = map[string]time.Duration{"memory": 0, "file": 50 * time.Millisecond}

// keepOpen is a store that other fleets also use.
type keepOpen struct{ fleet.Store }

func (keepOpen) Close() error { return nil }

// Half of the clocks are wrong by half a second, a process is killed and replaced each second, scripts are flushed, and the
// store freezes for a while.
func TestDisturbedProcessesOnRedis(t *testing.T) {
	redis := servers.Redis(t)
	each(t, func(t *testing.T, o order) {
		o.Redis = redis.URL()
		known(t, redis.URL(), o.Group)
		judge(t, o, disturbed(t, o, redis.FlushScripts, redis.Stop, redis.Cont), 0)
	})
}

func TestDisturbedProcessesOnDynamoDB(t *testing.T) {
	each(t, func(t *testing.T, o order) {
		server := dynalite(t)
		o.onDynamo(server)
		judge(t, o, disturbed(t, o, func() {}, server.Stop, server.Cont), 0)
	})
}

func disturbed(t *testing.T, o order, flush, halt, resume func()) (all []grant) {
	var dones []<-chan []grant
	var cmds []*exec.Cmd
	skew := func(i int) time.Duration { return time.Duration(i%2) * 500 * time.Millisecond }
	start := func(i int, lasts time.Duration) {
		o := o
		o.Skew, o.Lasts = skew(i), lasts
		cmd, done := spawn(t, o)
		cmds, dones = append(cmds, cmd), append(dones, done)
	}
	for i := range members {
		start(i, o.Lasts)
	}
	begin := clock.System.Now()
	at := func(d time.Duration) { _ = clock.System.Sleep(t.Context(), begin+d-clock.System.Now()) }
	const halted = 2 * time.Second // longer than the heartbeat timeout, after which processes use their parts
	for step := time.Duration(1); step*time.Second < o.Lasts; step++ {
		at(step * time.Second)
		if err := cmds[step].Process.Kill(); err == nil {
			start(int(step), o.Lasts-step*time.Second)
		}
		flush()
		if step == 1 && long() {
			halt()
			at(step*time.Second + halted)
			resume()
		}
	}
	for _, done := range dones {
		all = append(all, <-done...)
	}
	return all
}

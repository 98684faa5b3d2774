package redisstore_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// firstBeat sends the first heartbeat of a process in a group.
func firstBeat(t *testing.T, s *redisstore.Store, group string) fleet.Standing {
	t.Helper()
	a, err := s.Beat(t.Context(), &fleet.Beat{Group: group, Client: "c", Seq: 1, Silence: 1e6, Life: 10e6})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// askOf asks for one unit of a quota and of a rolling limit of 100, as a process of the group does.
func askOf(group string) *fleet.Ask {
	a := ask(quota(fixedOf("q", 100), 1, time.Now(), 24*time.Hour), claim(rollingOf("r", 100, time.Hour), 1))
	a.Group = group
	return a
}

func initialized(t *testing.T, s *redisstore.Store, groups ...string) {
	t.Helper()
	for _, g := range groups {
		if err := s.Init(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Register(t.Context(), groups...); err != nil {
		t.Fatal(err)
	}
}

func granted(t *testing.T, s *redisstore.Store, group string) int64 {
	t.Helper()
	return take(t, s, askOf(group)).Granted
}

func TestGroupThatRegisterLacksStartsFull(t *testing.T) {
	for _, askedFirst := range []bool{false, true} {
		srv := servers.Redis(t)
		s := open(t, srv.URL())
		initialized(t, s, "old")
		if _, ok, err := s.Known(t.Context(), "new"); err != nil || !ok {
			t.Errorf("known before the first heartbeat: %v, %v; want true", ok, err)
		}
		// Earlier versions ask for units before they list the group. A user without permission to write the
		// register also does.
		if askedFirst && granted(t, unregistered(t, srv, "new"), "new") != 0 {
			t.Error("a group is full that is not listed")
		}
		if a := firstBeat(t, s, "new"); a.Since != 0 || a.Unknown != 0 {
			t.Errorf("asked first %v: %+v, want a group that was always known", askedFirst, a)
		}
		if n := granted(t, s, "new"); n != 1 {
			t.Errorf("asked first %v: granted %d, want 1", askedFirst, n)
		}
		// Another process finds the same group and its usage.
		other := open(t, srv.URL())
		firstBeat(t, other, "new")
		if left := take(t, other, askOf("new")).Grants[0].Left; left != 98 {
			t.Errorf("asked first %v: %d left for another process, want 98", askedFirst, left)
		}
	}
}

// unregistered returns a store whose user may use a group, but not the register.
func unregistered(t *testing.T, srv *servers.Server, group string) *redisstore.Store {
	t.Helper()
	const secret = "a-secret"
	do(t, srv, "ACL", "SETUSER", "unregistered", "on", ">"+secret, "~{weir:"+group+"*", "+@all")
	return unconnected(t, "redis://unregistered:"+secret+"@"+srv.Addr())
}

// The first requests for units of a group that is missing from the register are granted, before or after
// heartbeats, and in any of several processes.
func TestFirstRequestOfNewGroupIsGranted(t *testing.T) {
	const processes = 4
	srv := servers.Redis(t)
	initialized(t, open(t, srv.URL()), "old")
	var stores []*redisstore.Store
	for range processes {
		stores = append(stores, open(t, srv.URL()))
	}
	for round := range 20 {
		group := fmt.Sprint("new", round)
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() {
				_, _ = s.Beat(t.Context(), &fleet.Beat{Group: group, Client: fmt.Sprint(i), Seq: 1, Silence: 1e6, Life: 10e6})
			})
			wg.Go(func() {
				a := askOf(group)
				a.Lane = uint64(i + 1)
				if err := s.Take(t.Context(), a); err != nil || a.Granted != 1 {
					t.Errorf("%s: process %d is granted %d, %v", group, i, a.Granted, err)
				}
			})
		}
		wg.Wait()
	}
}

// The first request of a process waits for another process that has listed the group and not yet declared it new.
func TestFirstRequestWaitsForProcessThatListsGroup(t *testing.T) {
	srv := servers.Redis(t)
	s := open(t, srv.URL())
	initialized(t, s, "old")
	do(t, srv, "HSET", "{weir:}register", "gnew", "1")
	done := make(chan int64, 1)
	go func() { done <- granted(t, open(t, srv.URL()), "new") }()
	for before := scripts(t, srv); scripts(t, srv) < before+5 && len(done) == 0; {
		runtime.Gosched() // until it has read that the group is listed
	}
	initialized(t, s, "new")
	if n := <-done; n != 1 {
		t.Errorf("granted %d, want 1", n)
	}
}

func scripts(t *testing.T, srv *servers.Server) (n int) {
	t.Helper()
	all, err := srv.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`).FindAllStringSubmatch(all, -1) {
		k, _ := strconv.Atoi(m[1])
		n += k
	}
	return n
}

func TestGroupStaysColdWithoutProofThatItIsNew(t *testing.T) {
	lost := map[string]func(t *testing.T, srv *servers.Server, s *redisstore.Store){
		"no register": func(*testing.T, *servers.Server, *redisstore.Store) {},
		"emptied": func(t *testing.T, srv *servers.Server, s *redisstore.Store) {
			initialized(t, s, "up")
			do(t, srv, "FLUSHALL")
		},
		"only its keys": func(t *testing.T, srv *servers.Server, s *redisstore.Store) {
			initialized(t, s, "up")
			do(t, srv, "DEL", "{weir:up}")
		},
		"listed since": func(t *testing.T, srv *servers.Server, s *redisstore.Store) {
			initialized(t, s, "old")
			firstBeat(t, s, "up")
			do(t, srv, "DEL", "{weir:up}", "{weir:up}members")
		},
		"cold before": func(t *testing.T, srv *servers.Server, s *redisstore.Store) {
			firstBeat(t, s, "up")
			initialized(t, s, "old")
		},
		"asked cold before": func(t *testing.T, srv *servers.Server, s *redisstore.Store) {
			granted(t, s, "up")
			initialized(t, s, "old")
		},
	}
	for name, lose := range lost {
		t.Run(name, func(t *testing.T) {
			srv := servers.Redis(t)
			lose(t, srv, open(t, srv.URL()))
			s := open(t, srv.URL())
			if a := firstBeat(t, s, "up"); a.Since == 0 {
				t.Errorf("%+v, want a group that is cold", a)
			}
			if n := granted(t, s, "up"); n != 0 {
				t.Errorf("granted %d of a group that is cold", n)
			}
		})
	}
}

func do(t *testing.T, srv *servers.Server, command ...string) {
	t.Helper()
	if _, err := srv.Do(command...); err != nil {
		t.Fatal(err)
	}
}

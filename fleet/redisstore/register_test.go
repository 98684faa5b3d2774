package redisstore_test

import (
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
		if askedFirst && granted(t, s, "new") != 0 {
			t.Error("a group is full before its first heartbeat")
		}
		if a := firstBeat(t, s, "new"); a.Since != 0 || a.Unknown != 0 {
			t.Errorf("asked first %v: %+v, want a group that was always known", askedFirst, a)
		}
		if n := granted(t, s, "new"); n != 1 {
			t.Errorf("asked first %v: granted %d, want 1", askedFirst, n)
		}
		// Another process finds the same group, with what was used of it.
		other := open(t, srv.URL())
		firstBeat(t, other, "new")
		if left := take(t, other, askOf("new")).Grants[0].Left; left != 98 {
			t.Errorf("asked first %v: %d left for another process, want 98", askedFirst, left)
		}
	}
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

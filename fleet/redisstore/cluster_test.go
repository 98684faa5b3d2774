package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

func TestCluster(t *testing.T) {
	g := servers.Cluster(t)
	t.Run("a group is in one slot", func(t *testing.T) { wantOneSlot(t, g) })
	t.Run("scripts that were flushed are sent again", func(t *testing.T) {
		wantFlushed(t, startFull(open(t, g.URL())), g.FlushScripts)
	})
	t.Run("conforms", func(t *testing.T) { conform(t, open(t, g.URL())) })
	t.Run("all nodes say how they are set", func(t *testing.T) { wantSettings(t, g) })
	t.Run("a node that is lost costs its groups only", func(t *testing.T) { wantOthers(t, g) })
}

// wantOneSlot checks that all keys of a group are in one slot. A cluster places a key by the text in braces.
func wantOneSlot(t *testing.T, g *servers.Group) {
	s := startFull(open(t, g.URL()))
	slots := make(map[string]bool)
	groups := []string{"", "a", "b", "a}b", "{", "}", "{}", "a{b}c", "\n\r\x00", "ü", "%7D", "a:b", "#", strings.Repeat("long}", 300), strings.Repeat("long}", 300) + "!"}
	huge := strings.Repeat("{k}\n", 2500) // 10 KB
	for i, name := range groups {
		b := bucketOf("lim}it{\n", 1, time.Hour, 100)
		a := ask(fleet.Claim{Rule: b, Key: huge, Cost: int64(i)}, fleet.Claim{Rule: b, Key: "}{", Cost: 1})
		a.Group = name
		if take(t, s, a); a.Granted != 1 || a.Grants[0].Left != int64(100-i) {
			t.Errorf("group %.20q: granted %d, %d left, want 1 and %d", name, a.Granted, a.Grants[0].Left, 100-i)
		}
	}
	for _, node := range g.Nodes {
		for _, key := range strings.Split(node.Keys(), "\n") {
			if tag, _, ok := strings.Cut(key, "}"); ok && strings.HasPrefix(tag, "{weir") {
				slots[tag] = true
			}
		}
	}
	if len(slots) != len(groups) {
		t.Errorf("%d tags for %d groups: %v", len(slots), len(groups), slots)
	}
}

// wantOthers kills a node and checks that groups on other nodes are still served, and its own groups after the
// failover.
func wantOthers(t *testing.T, g *servers.Group) {
	s := open(t, g.URL())
	b := claim(bucketOf("b", 1, time.Hour, 100), 1)
	try := func(name string, most time.Duration) error {
		a := ask(b)
		a.Group = name
		_, err := within(most, func(ctx context.Context) error { return s.Take(ctx, a) })
		return err
	}
	groups := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
	for _, name := range groups {
		if err := try(name, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	g.Nodes[2].Kill()
	eventually(t, "errors of some groups only", func() bool {
		failed := 0
		for _, name := range groups {
			if try(name, 100*time.Millisecond) != nil {
				failed++
			}
		}
		return failed > 0 && failed < len(groups)
	})
}

func wantSettings(t *testing.T, g *servers.Group) {
	all, err := open(t, g.URL()).Settings(t.Context())
	if err != nil || len(all) != len(g.Nodes) {
		t.Fatalf("%v, %v; want those of %d nodes", all, err, len(g.Nodes))
	}
	for _, s := range all {
		if s.Evicts() || !s.Forgets() || len(s.Hidden()) > 0 {
			t.Errorf("%+v; want a server that evicts nothing, keeps nothing and says so", s)
		}
	}
}

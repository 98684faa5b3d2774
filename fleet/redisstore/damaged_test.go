package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// If another program writes to a key of the store, the fleet is not cut off. The server then counts as emptied, so
// the previous usage counts as used.
func TestAKeyThatSomebodyElseWroteToCutsNobodyOff(t *testing.T) {
	srv := servers.Redis(t)
	s := open(t, srv.URL())
	lines := func() []string { return strings.Fields(srv.Keys()) }
	bucket := claim(bucketOf("b", 10, time.Hour, 10), 4)
	window := claim(rollingOf("w", 10, time.Hour), 4)
	beat := func() (fleet.Standing, error) {
		return s.Beat(t.Context(), &fleet.Beat{Group: group, Client: "one", Seq: 1, Silence: 1e6, Life: 3e8, Window: 36e8, Wish: 1e6, Need: 1})
	}
	use := func() { // uses every key of a group
		t.Helper()
		if _, err := srv.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		if err := s.Init(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		if got := take(t, s, ask(bucket, window)).Granted; got != 1 {
			t.Fatalf("granted %d of a new store, want 1", got)
		}
		if _, err := beat(); err != nil {
			t.Fatal(err)
		}
	}
	use()
	keys := lines()
	if len(keys) < 4 {
		t.Fatalf("the keys are %q: the test wants a mark, an answer, the members and the limits", keys)
	}
	for _, key := range keys {
		for _, garbage := range [][]string{
			{"SET", key, ""}, {"SET", key, "x"}, {"SET", key, "\xfd"}, {"SET", key, strings.Repeat("\xff", 200)}, {"SET", key, "\xfd" + strings.Repeat("\xff", 200)},
			{"LPUSH", key, "x"}, {"HSET", key, "one", "x"}, {"HSET", key, "b", "", "w", "\x01"}, {"SADD", key, "x"},
		} {
			use()
			if _, err := srv.Do("DEL", key); err != nil {
				t.Fatal(err)
			}
			if _, err := srv.Do(garbage...); err != nil {
				t.Fatal(err)
			}
			again := ask(bucket, window)
			if err := s.Take(t.Context(), again); err != nil {
				t.Errorf("%q: %v", garbage, err)
			}
			third := ask(bucket, window)
			evicted := garbage[0] == "HSET" && strings.Contains(key, "k:k") // a hash without weir's fields: an evicted limit is new
			if err := s.Take(t.Context(), third); err != nil || again.Granted+third.Granted > 1 && !evicted {
				t.Errorf("%q: granted %d and %d of what is left of 10 after 4, %v", garbage, again.Granted, third.Granted, err)
			}
			if _, err := beat(); err != nil {
				t.Errorf("%q: a beat: %v", garbage, err)
			}
		}
	}
}

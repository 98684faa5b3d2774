package redisstore_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A value that is not a record counts as absent and can be overwritten, so a damaged key stops no process
// permanently.
func TestWhatIsNoRecordIsWrittenOver(t *testing.T) {
	srv := servers.Redis(t)
	s := open(t, srv.URL())
	numbers := func(all ...float64) string {
		var b []byte
		for _, n := range all {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
		}
		return string(b)
	}
	swap := func(version int64) (fleet.Record, bool) {
		t.Helper()
		r, ok, err := s.Swap(t.Context(), group, fleet.Record{Name: "r", Version: version, Value: []byte("v"), Keep: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return r, ok
	}
	if _, ok := swap(0); !ok {
		t.Fatal("the first is not written")
	}
	key := srv.Keys()
	for i := range 8 {
		garbage := [][]string{
			{"SET", key, ""}, {"SET", key, "x"}, {"SET", key, strings.Repeat("\xff", 100)}, {"SET", key, strings.Repeat("\x00", 23)},
			{"SET", key, numbers(math.NaN(), 1e18, 0)}, {"SET", key, numbers(1e300, 1e18, 0)}, {"SET", key, numbers(5, math.NaN(), 0)}, {"LPUSH", key, "x"},
		}[i]
		if _, err := srv.Do("DEL", key); err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Do(garbage...); err != nil {
			t.Fatal(err)
		}
		all, _, err := s.Load(t.Context(), group, []string{"r"})
		if err != nil || len(all) != 1 || all[0].Version != 0 || len(all[0].Value) > 0 {
			t.Errorf("%q: loaded %+v, %v", garbage, all, err)
		}
		if r, ok := swap(1 << 40); ok || r.Version != 0 {
			t.Errorf("%q: written as though it had a version: %+v", garbage, r)
		}
		r, ok := swap(0)
		if !ok || r.Version < 1 {
			t.Errorf("%q: not written over: %+v", garbage, r)
		}
		if _, ok := swap(r.Version); !ok {
			t.Errorf("%q: what was written over it is no record", garbage)
		}
	}
}

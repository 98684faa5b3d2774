package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/deliverytest"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

func open(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestQueue(t *testing.T) {
	deliverytest.Test(t, deliverytest.Engine{
		In: func(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) },
		Open: func(t *testing.T) delivery.Queue {
			return open(t, filepath.Join(t.TempDir(), "deliveries.db"), sqlite.Options{MaxSize: 4 << 40}) // for the declared sizes of large bodies
		},
		Bounded: func(t *testing.T, most, bytes int64) func() delivery.Queue {
			p := filepath.Join(t.TempDir(), "deliveries.db")
			var s *sqlite.Store
			return func() delivery.Queue {
				if s != nil {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				s = open(t, p, sqlite.Options{MaxStored: most, MaxSize: bytes})
				return s
			}
		},
		Sleep: time.Sleep,
	})
}

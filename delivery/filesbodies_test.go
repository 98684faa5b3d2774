package delivery_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/deliverytest"
)

func TestFiles(t *testing.T) {
	deliverytest.TestBodies(t, func(t *testing.T) (delivery.Bodies, func(time.Duration)) {
		dir := filepath.Join(t.TempDir(), "bodies")
		b, err := delivery.OpenFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		return b, func(by time.Duration) {
			for _, name := range inFolder(t, dir) {
				info, err := os.Stat(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(name, time.Time{}, info.ModTime().Add(-by)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

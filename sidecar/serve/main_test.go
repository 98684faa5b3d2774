//go:build unix

package serve

import (
	"testing"

	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) {
	if err := serveNames(); err != nil {
		panic(err)
	}
	watchdog.Run(m)
}

package recovery

import (
	"os"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) {
	watchdog.Start()
	code := m.Run()
	served.Clean()
	os.Exit(code)
}

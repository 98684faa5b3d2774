package redisstore_test

import (
	"flag"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

// TestMain allows more parallel tests than cores: mostly they wait for a server's clock.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "8")
	watchdog.Run(m)
}

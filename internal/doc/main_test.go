package doc

import (
	"testing"

	"github.com/seed1158cd35/weir/internal/watchdog"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

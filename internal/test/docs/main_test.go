package docs

import (
	"os"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

func TestMain(m *testing.M) {
	code := m.Run()
	served.Clean()
	os.Exit(code)
}

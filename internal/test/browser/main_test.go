package browser

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// chromium is shared by all tests.
var chromium context.Context

func TestMain(m *testing.M) {
	window, end, err := Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	chromium = window
	code := m.Run()
	end()
	os.Exit(code)
}

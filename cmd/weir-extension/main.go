// Command weir-extension is an extension of AWS Lambda. It serves /v1/acquire and /v1/report on a loopback address, for a
// function in any language. It applies the limits of a weir.yaml, which a fleet can share. When an invocation ends, it returns
// its leased units before Lambda freezes it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/cli"
)

func main() {
	os.Exit(cli.Exit("weir-extension", run(context.Background(), world{args: os.Args, out: os.Stderr, env: os.LookupEnv}), os.Stderr))
}

// A world is the environment of the extension.
type world struct {
	args []string // the first is the program's name
	out  io.Writer
	env  func(string) (string, bool)

	// For tests. nil and "" mean the defaults of the system.
	store     func(fleet.Store) fleet.Store
	clock     clock.Clock
	telemetry string // address of the listener for Lambda's events
	serving   func(addr net.Addr)
}

// usage is printed if a user starts the program.
const usage = `weir-extension is started by AWS Lambda: put it into /opt/extensions, in a layer or an image.
WEIR_CONFIG names its weir.yaml; the default is weir.yaml next to the function (LAMBDA_TASK_ROOT), or /opt/weir.yaml`

// run runs until Lambda ends it.
func run(ctx context.Context, w world) error {
	at, ok := w.env("AWS_LAMBDA_RUNTIME_API")
	if !ok || at == "" {
		return errors.New(usage)
	}
	log := slog.New(slog.NewJSONHandler(w.out, nil)).With("extension", filepath.Base(w.args[0]))
	s, err := newServer(ctx, &w, log)
	if err != nil {
		a, registered := register(ctx, at, filepath.Base(w.args[0]))
		if registered == nil {
			registered = a.failed(ctx, "Extension.Configuration", err)
		}
		return errors.Join(err, registered)
	}
	defer s.close()
	a, err := register(ctx, at, filepath.Base(w.args[0]))
	if err != nil {
		return fmt.Errorf("register with Lambda at %s: %w", at, err)
	}
	return live(ctx, a, s, log)
}

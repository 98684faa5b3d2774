// Sidecar measures weir serve as released, in a separate process with limits, breaker, metrics and logs, and a minimal
// equivalent in another process. It records requests per second, latency, and the CPU time of the process in the middle. It
// measures forwarded, signed and refused requests, decisions, chats with models and their streams, and Envoy's rate limit
// service. If nginx and Redis are in the path, it starts them for comparison.
//
//	go build -o bin/weir ./cmd/weir && cd bench && go run ./cmd/sidecar ../bin/weir
//	go run ./cmd/sidecar old=../bin/weir.old new=../bin/weir
//
// The variants alternate within each round, so that other load affects all of them.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sidecar:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	f := flag.NewFlagSet("sidecar", flag.ContinueOnError)
	rounds := f.Int("rounds", 5, "how often each way is measured")
	each := f.Duration("each", 2*time.Second, "how long a measurement takes")
	only := f.String("only", "", "the first letters of the rows that are measured, of several with commas between; all if empty")
	role := f.String("role", "", "for its own processes: upstream, bare, spared, gather, answer or grpc")
	to := f.String("to", "", "the upstream of a bare proxy")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *role != "" {
		return play(*role, *to)
	}
	if f.NArg() == 0 {
		return fmt.Errorf("name the binaries of weir to measure: [NAME=]PATH")
	}
	stage, err := begin(f.Args())
	if err != nil {
		return err
	}
	defer stage.end()
	rows, err := stage.measure(*rounds, *each, *only)
	if err != nil {
		return err
	}
	print(os.Stdout, rows)
	return nil
}

// named splits an argument into the binary and its name in the table.
func named(arg string) (name, path string) {
	if name, path, ok := strings.Cut(arg, "="); ok {
		return name, path
	}
	return "weir", arg
}

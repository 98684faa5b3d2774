// Sidecar measures weir serve as it ships, in a process of its own with limits, breaker, metrics and
// logs, beside the least that does the same in another: requests a second, how long each takes, and the
// processor time that the process in the middle takes for it. What is passed on, signed anew, refused and
// decided, chats with models and their streams, and Envoy's rate limit service; nginx and Redis, if they
// are on the path, start for it.
//
//	go build -o bin/weir ./cmd/weir && cd bench && go run ./cmd/sidecar ../bin/weir
//	go run ./cmd/sidecar old=../bin/weir.old new=../bin/weir
//
// The ways take turns within each round, so that what else the machine does falls on all alike.
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

// named is a binary and what it is called in the table.
func named(arg string) (name, path string) {
	if name, path, ok := strings.Cut(arg, "="); ok {
		return name, path
	}
	return "weir", arg
}

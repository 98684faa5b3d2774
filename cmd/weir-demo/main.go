// Command weir-demo shows what weir does: the effect on callers when an upstream stalls or a tenant floods it, and a chat
// assistant that always answers.
package main

import (
	"context"
	"os"

	"github.com/seed1158cd35/weir/internal/cli"
)

func main() {
	os.Exit(cli.Exit("weir-demo", run(context.Background(), world{args: os.Args[1:], out: os.Stdout, err: os.Stderr, env: os.LookupEnv}), os.Stderr))
}

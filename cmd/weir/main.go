// Command weir keeps programs inside the limits of the APIs they call.
package main

import (
	"context"
	"os"

	"github.com/seed1158cd35/weir/internal/cli"
)

func main() {
	os.Exit(cli.Exit("weir", run(context.Background(), world{args: os.Args[1:], in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}), os.Stderr))
}

// Command weir keeps programs inside the limits of the APIs they call.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(exit(run(context.Background(), world{args: os.Args[1:], out: os.Stdout, err: os.Stderr, env: os.LookupEnv}), os.Stderr))
}

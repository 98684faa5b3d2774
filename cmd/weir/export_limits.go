package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
	sideexport "github.com/seed1158cd35/weir/sidecar/export"
)

// limitsFile is a file that is made of the limits of a configuration. made takes the options that declare has set.
func limitsFile(f *flag.FlagSet, made func(*config.File) (sideexport.File, error)) func(context.Context, world) ([]byte, error) {
	path := f.String("config", "weir.yaml", "the `file` whose limits are written")
	return func(_ context.Context, w world) ([]byte, error) { return writtenFile(w, *path, made) }
}

// writtenFile is made of the file at a path. What is wrong with that, and what becomes another thing, is told.
func writtenFile(w world, path string, made func(*config.File) (sideexport.File, error)) ([]byte, error) {
	file, err := config.Load(path, w.env)
	var written sideexport.File
	if err == nil {
		written, err = made(file)
	}
	if err != nil {
		fmt.Fprintln(w.err, err)
		return nil, cli.ErrFound
	}
	for _, text := range written.Warnings {
		fmt.Fprintln(w.err, "warn ", text)
	}
	return written.Text, nil
}

// several has a flag given more than once.
func several(f *flag.FlagSet, to *[]string, name, about string) {
	f.Func(name, about, func(s string) error { *to = append(*to, s); return nil })
}

// envoyFile is one of the two files for Envoy. asks says that it has an address.
func envoyFile(asks bool, made func(*config.File, sideexport.EnvoyOptions) (sideexport.File, error)) func(*flag.FlagSet) func(context.Context, world) ([]byte, error) {
	return func(f *flag.FlagSet) func(context.Context, world) ([]byte, error) {
		var o sideexport.EnvoyOptions
		f.StringVar(&o.Domain, "domain", "weir", "the domain of the rules")
		if asks {
			f.StringVar(&o.Address, "address", "", "the `host:port` of the rate limit service; decide.grpc if it is left out")
		}
		f.BoolVar(&o.Plain, "plain", false, "for the server of envoyproxy/ratelimit instead of weir's")
		several(f, &o.Upstreams, "upstream", "an upstream `name`, once for each; all if there is none")
		return limitsFile(f, func(file *config.File) (sideexport.File, error) { return made(file, o) })
	}
}

package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
	sideexport "github.com/seed1158cd35/weir/sidecar/export"
)

// limitsFile returns the maker of a file with the limits of a configuration.
func limitsFile(f *pflag.FlagSet, made func(*config.File) (sideexport.File, error)) fileMaker {
	path := f.String("config", "weir.yaml", "`FILE` with the limits to write")
	return func(_ context.Context, w world) ([]byte, error) { return writtenFile(w, *path, made) }
}

// writtenFile creates a file from the configuration at a path. It prints the configuration's mistakes, and warnings about
// limits that it cannot write exactly.
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

// envoyFile returns the maker of one of the two files for Envoy. asks specifies whether the file contains weir's address.
func envoyFile(asks bool, made func(*config.File, sideexport.EnvoyOptions) (sideexport.File, error)) func(*pflag.FlagSet) fileMaker {
	return func(f *pflag.FlagSet) fileMaker {
		var o sideexport.EnvoyOptions
		f.StringVar(&o.Domain, "domain", "weir", "`NAME` of the domain of the rules")
		if asks {
			f.StringVar(&o.Address, "address", "", "`HOST:PORT` of the rate limit service; default: decide.grpc")
		}
		f.BoolVar(&o.Plain, "plain", false, "write rules for the envoyproxy/ratelimit server")
		f.StringArrayVar(&o.Upstreams, "upstream", nil, "only `UPSTREAM`; repeat it for several")
		return limitsFile(f, func(file *config.File) (sideexport.File, error) { return made(file, o) })
	}
}

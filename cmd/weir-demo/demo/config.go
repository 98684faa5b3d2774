package demo

import (
	_ "embed"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// file is weir's configuration, as an operator would write it.
//
//go:embed weir.yaml
var file []byte

func load() (*config.File, error) { return config.Parse("weir.yaml", file, nil) }

func policy() (*weir.Policy, error) {
	f, err := load()
	if err != nil {
		return nil, err
	}
	return &f.Upstreams[0].Policy, nil
}

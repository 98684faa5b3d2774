package serve

import (
	"errors"
	"fmt"
	"os"

	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/envoy"
)

// Check reads the files that a configuration names, as New does, and returns all errors in them.
func Check(file *config.File) error {
	_, err := readPrices(file.Prices)
	errs := []error{err, checkCAs(file)}
	if c := file.Callers; c != nil && c.Claims != nil && c.Claims.KeyFile != "" {
		if _, err := newClaims(c.Claims, nil); err != nil {
			errs = append(errs, fmt.Errorf("callers: claims: %w", err))
		}
	}
	if c := file.Deliveries; c != nil && !c.InFleet() {
		errs = append(errs, checkFile(c))
	}
	if d := file.Decide; d != nil && d.Envoy.Rules != "" {
		if _, err := envoy.Load(d.Envoy.Rules); err != nil {
			errs = append(errs, fmt.Errorf("decide: rules: %w", err))
		}
	}
	for _, u := range file.Upstreams {
		c := file.LLM[u.Name].Cascade
		if c == nil {
			continue
		}
		for _, t := range c.Tiers {
			if t.Answers == "" {
				continue
			}
			if err := new(answers.Book).Load(t.Answers); err != nil {
				errs = append(errs, fmt.Errorf("upstream %s: llm: cascade: %w", u.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkCAs reads the certificates of the authorities for client certificates.
func checkCAs(file *config.File) error {
	read := func(name, ca string) error {
		if _, err := (config.Access{ClientCA: ca}).Auth(nil, os.ReadFile); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	errs := []error{read("listen", file.Callable.ClientCA), read("admin", file.AdminAccess.ClientCA)}
	if file.Decide != nil {
		errs = append(errs, read("decide", file.Decide.ClientCA))
	}
	return errors.Join(errs...)
}

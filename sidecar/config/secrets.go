package config

import (
	"regexp"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/doc"
)

// A Secret is a variable of the environment that the file names, and where.
type Secret struct {
	Variable string
	At       doc.Complaint // its place, without a problem
	check    strength
}

// A strength says what a secret must be so that it cannot be guessed.
type strength uint8

const (
	given   strength = iota // somebody else says what it is
	long                    // it signs
	header                  // it stands in headers
	webhook                 // it signs webhooks
)

// strengthOf is that of the secret in a place.
func strengthOf(path string) strength {
	switch {
	case path == "callers.claims.secret_env", path == "jwt.secret_env":
		return long
	case strings.HasPrefix(path, "deliveries.callbacks."):
		return webhook
	case path == "hash_env", strings.Contains(path, "tokens."):
		return header
	}
	return given
}

// secretPlace is where a variable can be named.
var secretPlace = regexp.MustCompile(`^(hash_env|(decide\.|admin_)?tokens\..+\.env(\[\d+\])?|callers\.claims\.secret_env|jwt\.secret_env|notify\.[a-z_]+_env|(traces|metrics)\.headers\..+|store\.password_env|deliveries\.postgres\.password_env|deliveries\.callbacks\..+\.secrets_env(\[\d+\])?|upstreams\..+\.llm\.key_env|upstreams\..+\.credentials\..+)$`)

// findSecrets lists what the file wants of the environment.
func findSecrets(n *node) (all []Secret) {
	for _, e := range n.All() {
		for _, v := range texts(e.Value) {
			if v.Kind == doc.Scalar && v.Text != "" && secretPlace.MatchString(v.Path) {
				all = append(all, Secret{v.Text, doc.Complaint{File: v.File, Line: v.Line, Column: v.Column, Field: v.Path}, strengthOf(v.Path)})
			}
		}
		all = append(all, findSecrets(e.Value)...)
	}
	return all
}

// CheckEnv complains of every variable that the file names and that is not there, or is too short for
// a secret. The values are not repeated.
func (f *File) CheckEnv(env func(string) (string, bool)) error {
	var errs doc.Errors
	for _, s := range f.Secrets {
		value, ok := env(s.Variable)
		c := s.At
		switch {
		case !ok:
			c.Problem, c.Hint = "environment variable "+s.Variable+" is not set", "set it before weir starts"
		case s.check != given:
			if err := s.check.of(value); err != nil {
				c.Problem = "environment variable " + s.Variable + ": " + err.Error()
			}
		case strings.TrimSpace(value) == "" && !strings.HasSuffix(c.Field, "password_env"):
			c.Problem, c.Hint = "environment variable "+s.Variable+": is empty", "set it before weir starts"
		}
		if c.Problem != "" {
			errs = append(errs, c)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errs.Sorted()
}

func (s strength) of(value string) error {
	switch s {
	case long:
		return auth.CheckKey(strings.TrimSpace(value))
	case webhook:
		_, err := delivery.ParseSecret(value)
		return err
	}
	return auth.CheckSecret(value)
}

package config

import (
	"regexp"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/doc"
)

// A Secret is an environment variable that the file names, and its position.
type Secret struct {
	Variable string
	At       doc.Complaint // position, without a problem
	check    strength
}

// A strength is the requirement that keeps a secret from being guessed.
type strength uint8

const (
	given   strength = iota // the secret is issued by a third party
	long                    // signs tokens
	header                  // sent in headers
	webhook                 // signs webhooks
)

// strengthOf returns the strength that a secret at a path needs.
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

// secretPlace matches the fields that name such variables.
var secretPlace = regexp.MustCompile(`^(hash_env|(decide\.|admin_)?tokens\..+\.env(\[\d+\])?|callers\.claims\.secret_env|jwt\.secret_env|notify\.[a-z_]+_env|(traces|metrics)\.headers\..+|store\.password_env|deliveries\.postgres\.password_env|deliveries\.callbacks\..+\.secrets_env(\[\d+\])?|upstreams\..+\.llm\.key_env|upstreams\..+\.credentials\..+)$`)

// findSecrets lists the environment variables that the file names.
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

// CheckEnv reports each variable that the file names and that is missing, or too short for a secret. It does not
// repeat values.
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

package xray

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Rules are central sampling rules for X-Ray. One applies to all requests of a service, at priority 100: one a second and 5% of
// the rest. If Errors is a path, another applies to requests to that path, at priority 50: ten a second and all of the rest.
type Rules struct {
	Service string // "*" for all
	Errors  string // a path, with * and ?; "" for no such rule. Rules decide when a request begins, so they cannot select errors
}

// Template returns the rules as a CloudFormation template.
func (r Rules) Template() ([]byte, error) {
	if n := len(r.Service); n == 0 || n > 64 || strings.ContainsAny(r.Service, "\"\\\r\n") {
		return nil, errors.New("want a service of 1 to 64 characters, without quotes")
	}
	if len(r.Errors) > 128 || r.Errors != "" && r.Errors[0] != '/' && r.Errors[0] != '*' {
		return nil, errors.New("want a path of 128 characters at most that begins with a slash, such as /orders/*")
	}
	var b strings.Builder
	b.WriteString("AWSTemplateFormatVersion: \"2010-09-09\"\nDescription: Sampling rules of X-Ray, written by weir export xray-sampling\nResources:\n")
	r.rule(&b, "Weir", "weir", 100, "0.05", 1, "*")
	if r.Errors != "" {
		b.WriteString("  # It keeps all requests to the path, not only failed ones: X-Ray decides when a request begins.\n")
		r.rule(&b, "WeirErrors", "weir-errors", 50, "1", 10, r.Errors)
	}
	return []byte(b.String()), nil
}

// rule appends one rule with every field, because CloudFormation requires them.
func (r Rules) rule(b *strings.Builder, resource, name string, priority int, rate string, reservoir int, path string) {
	fmt.Fprintf(b, "  %s:\n    Type: AWS::XRay::SamplingRule\n    Properties:\n      SamplingRule:\n", resource)
	for _, f := range [][2]string{
		{"RuleName", strconv.Quote(name)}, {"Priority", strconv.Itoa(priority)}, {"FixedRate", rate}, {"ReservoirSize", strconv.Itoa(reservoir)},
		{"ServiceName", strconv.Quote(r.Service)}, {"ServiceType", `"*"`}, {"Host", `"*"`}, {"HTTPMethod", `"*"`}, {"URLPath", strconv.Quote(path)}, {"ResourceARN", `"*"`}, {"Version", "1"},
	} {
		fmt.Fprintf(b, "        %s: %s\n", f[0], f[1])
	}
}

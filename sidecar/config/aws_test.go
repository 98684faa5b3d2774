package config

import (
	"strings"
	"testing"
	"time"
)

func TestAWS(t *testing.T) {
	f := parse(t, `upstreams:
  s3: {url: https://h, preset: s3, aws: {service: s3, region: us-gov-west-1, role: "arn:aws-us-gov:iam::123456789012:role/team/weir", external_id: x, presigned: refuse, prefix_depth: 2}}
  any: {url: https://h, aws: {}}
  drs: {url: https://h, preset: drs, aws: {region: eu-west-1}, jobs: {threshold: 10, timeout: 1m}}
  plain: {url: https://h}`)
	want := AWS{Service: "s3", Region: "us-gov-west-1", Role: "arn:aws-us-gov:iam::123456789012:role/team/weir", ExternalID: "x", RefusePresigned: true, PrefixDepth: 2}
	if f.AWS["s3"] != want || f.AWS["drs"] != (AWS{Service: "drs", Region: "eu-west-1"}) || len(f.AWS) != 3 {
		t.Errorf("%+v", f.AWS)
	}
	if f.Jobs["drs"] != (Jobs{Threshold: 10, Timeout: time.Minute}) || len(f.Jobs) != 1 {
		t.Errorf("%+v", f.Jobs)
	}
	for _, u := range f.Upstreams {
		if u.Policy.Undeclared != (u.Name != "plain") {
			t.Errorf("%s: undeclared operations have names: %v", u.Name, u.Policy.Undeclared)
		}
	}
}

func TestMistakesAroundAWS(t *testing.T) {
	for text, want := range map[string]string{
		"aws: {region: Ireland}":                          "is not the name of a region",
		"aws: {role: weir}":                               "is not the ARN of a role",
		"aws: {service: drs, shards: 16}":                 "only keys of S3 are spread",
		"aws: {service: s3, shards: 70000}":               "is more than 65536",
		"aws: {external_id: x}":                           "there is no role to ask with it",
		"aws: {presigned: maybe}":                         "pass or refuse",
		"aws: {prefix_depth: 0}":                          "prefix_depth",
		"jobs: {}":                                        "is for DRS",
		"aws: {service: s3, region: eu-west-1}, jobs: {}": "is for DRS",
		"preset: drs, aws: {region: eu-west-1}, jobs: {max: 1, threshold: 2}": "threshold 2 is above max 1",
		"limits: {l: {rate: 1/s, scope: prefix}}":                             "there is no such scope",
	} {
		_, err := Parse("weir.yaml", []byte("upstreams: {a: {url: https://h, "+text+"}}"), setting(nil))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "weir.yaml:1:") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"cloudwatch: {metrics: {Retry: x}}":       `metric "Retry"`,
		"cloudwatch: {dimensions: {Zone: x}}":     `dimension "Zone"`,
		"cloudwatch: {interval: 10ms}":            "interval",
		"notify: {interval: 1m}":                  "wants webhook_env",
		"notify: {webhook_env: HOOK}":             "together",
		"notify: {sns: arn, kinds: [everything]}": "exhausted, quota",
		"notify: {sns: arn, runbook: nothing}":    "is not the URL of a page",
	} {
		_, err := Parse("weir.yaml", []byte(text+"\nupstreams: {a: {url: https://h}}"), setting(nil))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

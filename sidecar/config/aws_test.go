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

func TestJobsBelowTheDefaultThresholdNeedNoThreshold(t *testing.T) {
	f := parse(t, "upstreams: {drs: {url: https://h, preset: drs, aws: {region: eu-west-1}, jobs: {max: 10}}}")
	if f.Jobs["drs"] != (Jobs{Max: 10}) {
		t.Errorf("%+v", f.Jobs)
	}
}

func TestMistakesAroundAWS(t *testing.T) {
	for text, want := range map[string]string{
		"aws: {region: Ireland}":                          "is not the name of a region",
		"aws: {role: weir}":                               "is not the ARN of a role",
		"aws: {service: drs, shards: 16}":                 "shards applies to S3 only",
		"aws: {service: s3, shards: 70000}":               "is more than 65536",
		"aws: {external_id: x}":                           "no role is configured",
		"aws: {presigned: maybe}":                         "pass or refuse",
		"aws: {prefix_depth: 0}":                          "prefix_depth",
		"jobs: {}":                                        "needs an upstream of DRS",
		"aws: {service: s3, region: eu-west-1}, jobs: {}": "needs an upstream of DRS",
		"preset: drs, aws: {region: eu-west-1}, jobs: {max: 1, threshold: 2}": "threshold 2 is above max 1",
		"limits: {l: {rate: 1/s, scope: prefix}}":                             "unknown scope",
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
		"notify: {interval: 1m}":                  "needs webhook_env",
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

// Variables that override jobs are checked with the file, even if the file has no jobs.
func TestVariablesOfJobsAreChecked(t *testing.T) {
	const plain, withJobs = "upstreams: {drs: {url: http://localhost:1, preset: drs}}\n",
		"decide: {}\nupstreams: {drs: {url: http://localhost:1, preset: drs, aws: {service: drs, region: eu-west-1}, jobs: {max: 20}}}\n"
	for _, c := range []struct{ name, value, wrong string }{
		{"JOB_THROTTLE_THRESHOLD", "abc", "JOB_THROTTLE_THRESHOLD"}, {"JOB_THROTTLE_THRESHOLD", "0", "JOB_THROTTLE_THRESHOLD"},
		{"JOB_THROTTLE_THRESHOLD", "-3", "JOB_THROTTLE_THRESHOLD"}, {"JOB_THROTTLE_THRESHOLD", "1.5", "JOB_THROTTLE_THRESHOLD"},
		{"JOB_POLL_INTERVAL", "soon", "JOB_POLL_INTERVAL"}, {"JOB_POLL_INTERVAL", "0", "JOB_POLL_INTERVAL"}, {"JOB_POLL_INTERVAL", "-1", "JOB_POLL_INTERVAL"},
		{"JOB_THROTTLE_TIMEOUT", "1 h", "JOB_THROTTLE_TIMEOUT"}, {"JOB_THROTTLE_TIMEOUT", "-5", "JOB_THROTTLE_TIMEOUT"},
		{"JOB_THROTTLE_THRESHOLD", "12", ""}, {"JOB_POLL_INTERVAL", "15", ""}, {"JOB_POLL_INTERVAL", "15s", ""}, {"JOB_THROTTLE_TIMEOUT", "0", ""},
	} {
		for _, file := range []string{plain, withJobs} {
			_, err := Parse("weir.yaml", []byte(file), func(name string) (string, bool) { return c.value, name == c.name })
			if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s=%s: %v", c.name, c.value, err)
			}
		}
	}
	_, err := Parse("weir.yaml", []byte(withJobs), func(name string) (string, bool) { return "21", name == "JOB_THROTTLE_THRESHOLD" })
	if err == nil || !strings.Contains(err.Error(), "JOB_THROTTLE_THRESHOLD 21 is above max 20") {
		t.Error(err)
	}
}

// Table names that DynamoDB does not allow are errors of the file.
func TestTableNamesAreChecked(t *testing.T) {
	for name, good := range map[string]bool{
		"ab": false, "a b c": false, "weir!": false, "größe": false, strings.Repeat("a", 256): false,
		"abc": true, "weir-limits_1.eu": true, strings.Repeat("a", 255): true, "arn:aws:dynamodb:eu-west-1:123456789012:table/weir": true,
	} {
		_, err := Parse("weir.yaml", []byte("store: {dynamodb: {table: \""+name+"\", region: eu-west-1}}\nupstreams: {a: {url: https://h}}\n"), setting(nil))
		if (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

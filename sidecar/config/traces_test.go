package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestTraces(t *testing.T) {
	f, err := Parse("weir.yaml", []byte("traces: {url: \"https://otel.example.com\", headers: {authorization: TOKEN}, share: off, each_second: off, xray: on}\nupstreams: {api: {url: \"https://api.example.com\"}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Traces{URL: "https://otel.example.com/v1/traces", Headers: map[string]string{"Authorization": "TOKEN"}, Share: -1, Each: -1, XRay: true}
	if !reflect.DeepEqual(f.Traces, want) {
		t.Errorf("got %+v, want %+v", f.Traces, want)
	}
	if err := f.CheckEnv(func(string) (string, bool) { return "", false }); err == nil || !strings.Contains(err.Error(), "TOKEN is not set") {
		t.Errorf("without its variable: got %v, want an error that names it", err)
	}
}

func TestTracesThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"traces: {url: \"udp://127.0.0.1\"}":                              "is an X-Ray daemon",
		"traces: {}":                                                      "has neither url",
		"traces: {url: \"grpc://127.0.0.1\"}":                             "needs a port",
		"traces: {url: \"127.0.0.1:4318\"}":                               "is not the URL",
		"traces: {url: \"ftp://127.0.0.1\"}":                              "is not the URL",
		"traces: {url: \"http://u:secret@127.0.0.1:4318\"}":               "may be secret",
		"traces: {url: \"http://127.0.0.1:4318/?key=secret\"}":            "may be secret",
		"traces: {url: \"http://127.0.0.1:4318\", share: 5}":              "more than 100%",
		"traces: {url: \"http://127.0.0.1:4318\", headers: {\"a b\": X}}": "a b",
	} {
		_, err := Parse("weir.yaml", []byte(text+"\nupstreams: {api: {url: \"https://api.example.com\"}}\n"), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

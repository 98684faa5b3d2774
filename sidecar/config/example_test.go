package config_test

import (
	"fmt"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/config"
)

func ExampleParse() {
	f, err := config.Parse("weir.yaml", []byte(`
upstreams:
  s3:
    url: https://s3.eu-central-1.amazonaws.com
    preset: s3
    limits: {get: 500/s}
`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, u := range f.Upstreams {
		for _, l := range u.Policy.Limits {
			fmt.Println(u.Name, l.Name, l)
		}
		_, err := weir.New(u.Name, u.Policy, weir.Options{})
		fmt.Println(err)
	}
	// Output:
	// s3 put 3500/s burst 300
	// s3 get 500/s burst 500
	// s3 delete 3000/s burst 300
	// <nil>
}

func ExampleParse_mistakes() {
	_, err := config.Parse("weir.yaml", []byte(`
listen: 8080
upstreams:
  s3:
    url: https://s3.eu-central-1.amazonaws.com
    limts: {put: 100/s}
    breaker: {open: 30}
`), nil)
	fmt.Println(err)
	// Output:
	// weir.yaml:2:9: listen: "8080": want host:port; write 127.0.0.1:8080, or :8080 for every address
	// weir.yaml:6:5: upstreams.s3.limts: unknown field "limts"; did you mean limits?
	// weir.yaml:7:21: upstreams.s3.breaker.open: "30": has no unit; write 30s for seconds, or use ms, m, h
}

func ExampleLoad() {
	_, err := config.Load("missing.yaml", nil)
	fmt.Println(err)
	// Output: configuration: open missing.yaml: no such file or directory
}

func ExamplePresets() {
	fmt.Println(config.Presets())
	// Output: [anthropic azure-openai bedrock chat-levels cloudflare cloudwatch drs dynamodb ec2 gemini gemini-free gemini-free-refill github gitlab http lambda mcp messaging ntfy openai openai-compatible openrouter s3 shopify slack stripe sts unknown]
}

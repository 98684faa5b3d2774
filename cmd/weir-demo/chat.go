package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/cmd/weir-demo/chat"
	shop "github.com/seed1158cd35/weir/examples/chat"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// runChat runs examples/chat: a real sidecar on loopback in front of simulated providers. It reads no environment variables, so
// no keys.
func runChat(ctx context.Context, w world) error {
	c, err := chatConfig(w)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = chat.Run(ctx, c)
	if ctx.Err() != nil && !c.JSON {
		_, _ = fmt.Fprintln(w.out)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("stopped before the end")
	case errors.Is(err, chat.ErrUnanswered):
		return cli.ErrFound
	}
	return err
}

// chatConfig reads the flags.
func chatConfig(w world) (chat.Config, error) {
	c := chat.Config{Out: w.out, Sidecar: chatSidecar}
	f := cli.Flags("weir-demo chat", "", w.err)
	c.Act = 5 * time.Second
	cli.Duration(f, &c.Act, "act", "how `long` each of the five acts is, from 1s to 1m; the last takes up to three times as long")
	f.IntVar(&c.Rate, "rate", 12, "calls a second, from 2 to 20")
	f.BoolVar(&c.JSON, "json", false, "print a JSON object for each act")
	var err error
	c.Stay, c.Colour, err = w.parse(f, func() error { return c.Validate() })
	return c, err
}

// chatSidecar runs weir with examples/chat and providers at these URLs.
func chatSidecar(primary, elsewhere string) (*chat.Sidecar, error) {
	dir, err := os.MkdirTemp("", "weir-demo-chat-")
	if err != nil {
		return nil, err
	}
	s, err := startChat(dir, primary, elsewhere)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("examples/chat: %w", err)
	}
	return &chat.Sidecar{URL: "http://" + s.Addr(), Close: func() {
		_ = s.Close() // all calls have ended, or the run was canceled
		_ = os.RemoveAll(dir)
	}}, nil
}

func startChat(dir, primary, elsewhere string) (*serve.Running, error) {
	for _, name := range []string{"weir.yaml", "answers.yaml", "prices.yaml"} {
		data, err := shop.Files.ReadFile(name)
		if err == nil && name == "weir.yaml" {
			data, err = rewired(data, primary, elsewhere)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	return serve.Start(filepath.Join(dir, "weir.yaml"), serve.Options{Env: practiceKeys, Version: cli.Version()})
}

// practiceKeys is the complete environment of the sidecar.
func practiceKeys(name string) (string, bool) {
	switch name {
	case "OPENAI_API_KEY":
		return chat.PrimaryKey, true
	case "OPENROUTER_API_KEY":
		return chat.ElsewhereKey, true
	}
	return "", false
}

// rewired returns a configuration with free addresses and simulated providers. Everything else is unchanged.
func rewired(data []byte, primary, elsewhere string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	root := doc.Content[0]
	set(root, "127.0.0.1:0", "listen")
	set(root, "off", "admin")
	set(root, primary, "upstreams", "chat", "url")
	set(root, elsewhere, "upstreams", "elsewhere", "url")
	return yaml.Marshal(&doc)
}

// set sets a field of a mapping, and adds it if it is missing.
func set(n *yaml.Node, value string, path ...string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != path[0] {
			continue
		}
		if len(path) == 1 {
			n.Content[i+1] = &yaml.Node{Kind: yaml.ScalarNode, Value: value}
			return
		}
		set(n.Content[i+1], value, path[1:]...)
		return
	}
	if len(path) == 1 {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: path[0]}, &yaml.Node{Kind: yaml.ScalarNode, Value: value})
	}
}

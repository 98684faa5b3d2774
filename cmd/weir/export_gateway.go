package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strings"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
	sideexport "github.com/seed1158cd35/weir/sidecar/export"
)

// A gatewayTask is what weir export apigateway is to do.
type gatewayTask struct {
	path        string
	o           sideexport.GatewayOptions
	at          sideexport.GatewayStage
	region      string
	diff, apply bool
}

func gatewayFile(f *flag.FlagSet) func(context.Context, world) ([]byte, error) {
	var g gatewayTask
	f.StringVar(&g.path, "config", "weir.yaml", "the `file` whose limits are written")
	f.StringVar(&g.o.Upstream, "upstream", "", "the `name` of the upstream; needed if there are several")
	f.BoolVar(&g.o.WebSocket, "websocket", false, "a WebSocket API instead of a REST API: operations are routes")
	f.Float64Var(&g.o.AccountRate, "account-rate", 10000, "requests a second that AWS allows all APIs of the account")
	f.Int64Var(&g.o.AccountBurst, "account-burst", 5000, "the burst that goes with it")
	f.BoolVar(&g.diff, "diff", false, "say what API Gateway lacks of the limits, in place of a template")
	f.BoolVar(&g.apply, "apply", false, "say so, and change it there")
	f.StringVar(&g.at.API, "api", "", "the `id` of the API, for -diff and -apply")
	f.StringVar(&g.at.Stage, "stage", "", "the `name` of its stage")
	f.StringVar(&g.region, "region", "", "the AWS `region` of the API; that of the environment if it is left out")
	return func(ctx context.Context, w world) ([]byte, error) {
		if !g.diff && !g.apply {
			return writtenFile(w, g.path, func(file *config.File) (sideexport.File, error) { return sideexport.APIGateway(file, g.o) })
		}
		if g.at.API == "" || g.at.Stage == "" {
			fmt.Fprintln(w.err, "weir export apigateway: -diff and -apply want -api and -stage")
			return nil, cli.ErrUsage
		}
		return nil, g.run(ctx, w)
	}
}

// run says what differs, before anything is changed.
func (g *gatewayTask) run(ctx context.Context, w world) error {
	file, err := config.Load(g.path, w.env)
	if err != nil {
		fmt.Fprintln(w.err, err)
		return cli.ErrFound
	}
	api, err := w.gateway(ctx, g.region)
	if err != nil {
		return err
	}
	changes, err := api.Compare(ctx, file, g.o, g.at)
	for _, text := range changes.Warnings {
		fmt.Fprintln(w.err, "warn ", text)
	}
	if err != nil {
		return err
	}
	for _, text := range changes.Left {
		fmt.Fprintln(w.out, "left ", text)
	}
	if len(changes.Lines) == 0 {
		fmt.Fprintln(w.out, "nothing to change")
		return nil
	}
	fmt.Fprintln(w.out, strings.Join(changes.Lines, "\n"))
	if !g.apply {
		return nil
	}
	if err := changes.Apply(ctx); err != nil {
		return err
	}
	fmt.Fprintln(w.out, "done")
	return nil
}

// gateway is API Gateway of a region, as the environment says.
func (w world) gateway(ctx context.Context, region string) (*sideexport.GatewayAPI, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(region))
	if err != nil {
		return nil, err
	}
	special, _ := w.env("AWS_ENDPOINT_URL_API_GATEWAY")
	all, _ := w.env("AWS_ENDPOINT_URL")
	return &sideexport.GatewayAPI{AWS: cfg, URL: cmp.Or(special, all)}, nil
}

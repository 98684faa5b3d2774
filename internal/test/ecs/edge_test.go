package ecs

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/sidecar/config"
)

func loaded(t *testing.T) *config.File {
	t.Helper()
	f, err := config.Load(root+"deploy/ecs/weir.yaml", func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// at returns the value at a path of names and indices.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			all, _ := v.([]any)
			if p >= len(all) {
				t.Fatalf("%v has no %d", v, p)
			}
			v = all[p]
		}
	}
	return v
}

// keyed returns an attribute of a balancer or of its targets.
func keyed(t *testing.T, list any, name string) int {
	t.Helper()
	all, _ := list.([]any)
	for _, a := range all {
		if at(t, a, "Key") == name {
			n, err := strconv.Atoi(fmt.Sprint(at(t, a, "Value")))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no %s in %v", name, list)
	return 0
}

// The balancer requests /readyz of the admin listener, which needs no token, and sends calls to the other listener.
func TestTheLoadBalancerAsksWhetherWeirIsReady(t *testing.T) {
	v, f := readTemplate(t, text(t, file)), loaded(t)
	targets, task, service := v.properties("Targets"), v.properties("Task"), v.properties("Service")
	if got := targets["HealthCheckPath"]; got != "/readyz" {
		t.Errorf("it asks %v", got)
	}
	if got := fmt.Sprint(":", targets["HealthCheckPort"]); got != f.Admin || f.AdminAll {
		t.Errorf("it asks at %s; the admin listener is at %s, and asks everyone for a token: %v", got, f.Admin, f.AdminAll)
	}
	for _, port := range []any{targets["Port"], at(t, service, "LoadBalancers", 0, "ContainerPort"), at(t, task, "ContainerDefinitions", 0, "PortMappings", 0, "ContainerPort")} {
		if fmt.Sprint(":", port) != f.Listen {
			t.Errorf("port %v, weir listens on %s", port, f.Listen)
		}
	}
}

// ECS waits for a stopped task until weir has ended, and the balancer as long as weir still responds.
func TestTasksEndInTime(t *testing.T) {
	v, f := readTemplate(t, text(t, file)), loaded(t)
	stop := at(t, v.properties("Task"), "ContainerDefinitions", 0, "StopTimeout").(int)
	if need := f.LameDuck + f.Drain + 5*time.Second; time.Duration(stop)*time.Second < need || stop > 120 {
		t.Errorf("it is killed after %d s, and needs %v; Fargate allows 120", stop, need)
	}
	targets := v.properties("Targets")
	delay := keyed(t, targets["TargetGroupAttributes"], "deregistration_delay.timeout_seconds")
	if time.Duration(delay)*time.Second < f.LameDuck+f.Drain {
		t.Errorf("connections are cut after %d s, weir answers for %v", delay, f.LameDuck+f.Drain)
	}
	notices := time.Duration(targets["HealthCheckIntervalSeconds"].(int)*targets["UnhealthyThresholdCount"].(int)) * time.Second
	if f.LameDuck < notices {
		t.Errorf("weir takes calls for %v, and the balancer needs %v to notice", f.LameDuck, notices)
	}
	idle := keyed(t, v.properties("Balancer")["LoadBalancerAttributes"], "idle_timeout.timeout_seconds")
	if call := f.Upstreams[0].Policy.WithDefaults().Timeouts.Call; time.Duration(idle)*time.Second <= call || idle >= 120 {
		t.Errorf("the balancer gives up after %d s, a call takes up to %v, and weir keeps idle connections for 120 s", idle, call)
	}
}

// Blocked addresses are refused before counting, trusted addresses are not counted, and others get the same response as from
// weir.
func TestTheFirewallsRules(t *testing.T) {
	v := readTemplate(t, text(t, file))
	wall := v.properties("Firewall")
	rules := wall["Rules"].([]any)
	if len(rules) != 3 {
		t.Fatalf("%d rules", len(rules))
	}
	for i, name := range []string{"blocked", "trusted", "rate"} {
		if at(t, rules, i, "Name") != name || at(t, rules, i, "Priority") != i {
			t.Errorf("rule %d is %v with priority %v, want %s", i, at(t, rules, i, "Name"), at(t, rules, i, "Priority"), name)
		}
	}
	for i, action := range []string{"Block", "Allow"} {
		if at(t, rules, i, "Statement", "IPSetReferenceStatement", "Arn") == nil || at(t, rules, i, "Action", action) == nil {
			t.Errorf("rule %d: %v", i, rules[i])
		}
	}
	said := at(t, rules, 2, "Action", "Block", "CustomResponse")
	if at(t, said, "ResponseCode") != 429 || at(t, said, "ResponseHeaders", 0, "Name") != "Retry-After" {
		t.Errorf("who is too fast hears %v", said)
	}
	var got struct {
		Error struct {
			Code    string
			Message string
			Details map[string]any
		}
	}
	body := at(t, wall, "CustomResponseBodies", at(t, said, "CustomResponseBodyKey"), "Content").(string)
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Error.Code != refuse.RateLimitExceeded || got.Error.Details["reason"] != string(weir.RateLimited) || got.Error.Message == "" {
		t.Errorf("the body is %s: %v", body, err)
	}
	if on := v.properties("FirewallOfBalancer"); at(t, on, "ResourceArn") == nil || at(t, on, "WebACLArn") == nil {
		t.Error("the firewall stands before nothing")
	}
}

// Only the balancer reaches weir.
func TestOnlyTheLoadBalancerReachesTheTasks(t *testing.T) {
	var ingress struct {
		Rules []struct {
			Source string `yaml:"SourceSecurityGroupId"`
			Cidr   string
		} `yaml:"SecurityGroupIngress"`
	}
	v := readTemplate(t, text(t, file))
	n := v.Resources["TaskGroup"].Properties
	if err := n.Decode(&ingress); err != nil {
		t.Fatal(err)
	}
	if len(ingress.Rules) != 1 || ingress.Rules[0].Cidr != "" || ingress.Rules[0].Source != "BalancerGroup.GroupId" {
		t.Errorf("who reaches a task: %+v", ingress.Rules)
	}
	if got := at(t, v.properties("Service"), "NetworkConfiguration", "AwsvpcConfiguration", "AssignPublicIp"); got != "DISABLED" {
		t.Errorf("a task has a public address: %v", got)
	}
}

// The role has the permissions for weir's store, and the table equals that of weir store init.
func TestTheTaskMayUseItsStore(t *testing.T) {
	v, f := readTemplate(t, text(t, file)), loaded(t)
	table := v.properties("Store")
	if f.Store.DynamoDB == nil || f.Store.DynamoDB.Table != table["TableName"] || at(t, table, "KeySchema", 0, "AttributeName") != "k" || at(t, table, "TimeToLiveSpecification", "AttributeName") != "ttl" {
		t.Errorf("the store is %+v, the table %v", f.Store, table)
	}
	var may []string
	for _, a := range at(t, v.properties("TaskRole"), "Policies", 0, "PolicyDocument", "Statement", 0, "Action").([]any) {
		may = append(may, strings.TrimPrefix(a.(string), "dynamodb:"))
	}
	files, err := filepath.Glob(root + "fleet/dynamostore/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	init := []string{"CreateTable", "DescribeTimeToLive", "UpdateTimeToLive"} // only for weir store init
	for _, name := range files {
		for _, m := range regexp.MustCompile(`s\.api\.(\w+)\(`).FindAllStringSubmatch(text(t, name), -1) {
			if !slices.Contains(may, m[1]) && !slices.Contains(init, m[1]) {
				t.Errorf("the task may not %s", m[1])
			}
		}
	}
}

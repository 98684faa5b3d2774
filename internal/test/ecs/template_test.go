package ecs

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const root = "../../../"

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A template is a CloudFormation template.
type template struct {
	Parameters map[string]struct {
		Type    string `yaml:"Type"`
		Default any    `yaml:"Default"`
	} `yaml:"Parameters"`
	Conditions map[string]yaml.Node `yaml:"Conditions"`
	Resources  map[string]struct {
		Type       string    `yaml:"Type"`
		DependsOn  string    `yaml:"DependsOn"`
		Properties yaml.Node `yaml:"Properties"`
	} `yaml:"Resources"`
	Outputs map[string]struct {
		Value yaml.Node `yaml:"Value"`
	} `yaml:"Outputs"`

	schemas map[string]json.RawMessage
	used    map[string]bool
	on      bool // conditions are true
	wrong   []string
}

func readTemplate(t *testing.T, source string) *template {
	t.Helper()
	v := &template{used: make(map[string]bool)}
	if err := yaml.Unmarshal([]byte(source), v); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text(t, "testdata/schemas.json")), &v.schemas); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *template) bad(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// sample returns a plausible value of a resource or attribute.
func sample(attribute string) string {
	switch {
	case strings.HasSuffix(attribute, "Arn"):
		return "arn:aws:service:us-east-1:123456789012:thing/one"
	case attribute == "GroupId":
		return "sg-0123456789abcdef0"
	}
	return "one"
}

// ref returns the value of a parameter, a resource, or a pseudo parameter.
func (v *template) ref(name string) any {
	v.used[name] = true
	if p, ok := v.Parameters[name]; ok {
		switch p.Type {
		case "Number":
			return p.Default
		case "CommaDelimitedList":
			return []any{"192.0.2.0/24", "198.51.100.7/32"}
		case "List<AWS::EC2::Subnet::Id>":
			return []any{"subnet-1", "subnet-2"}
		case "AWS::EC2::VPC::Id":
			return "vpc-1"
		}
		return sample("Arn")
	}
	if r, ok := v.Resources[name]; ok {
		if strings.HasPrefix(r.Type, "AWS::ElasticLoadBalancingV2::") {
			return sample("Arn")
		}
		return sample("")
	}
	if name != "AWS::Region" {
		v.bad("there is no %s", name)
	}
	return sample("")
}

// attribute returns the value of NAME.ATTRIBUTE, which the resource's schema must have.
func (v *template) attribute(s string) any {
	name, attribute, _ := strings.Cut(s, ".")
	v.used[name] = true
	var schema struct {
		ReadOnly []string `json:"readOnlyProperties"`
	}
	if err := json.Unmarshal(v.schemas[v.Resources[name].Type], &schema); err != nil || !slices.Contains(schema.ReadOnly, "/properties/"+attribute) {
		v.bad("there is no %s", s)
	}
	return sample(attribute)
}

// value returns the value of a node with evaluated functions.
func (v *template) value(n *yaml.Node) any {
	switch n.Tag {
	case "!Ref":
		return v.ref(n.Value)
	case "!GetAtt":
		return v.attribute(n.Value)
	case "!Sub":
		for _, m := range regexp.MustCompile(`\$\{([^}]+)\}`).FindAllStringSubmatch(n.Value, -1) {
			if m[1] != "AWS::Partition" {
				v.ref(m[1])
			}
		}
		return strings.ReplaceAll(n.Value, "${AWS::Partition}", "aws")
	case "!If":
		if _, ok := v.Conditions[n.Content[0].Value]; !ok {
			v.bad("there is no condition %s", n.Content[0].Value)
		}
		v.used[n.Content[0].Value] = true
		if v.on {
			return v.value(n.Content[1])
		}
		return v.value(n.Content[2])
	}
	return v.plain(n)
}

// plain returns the value of a node that is not a function.
func (v *template) plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any)
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = v.value(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		all := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			all = append(all, v.value(c))
		}
		return all
	}
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		v.bad("there is no function %s", n.Tag)
	}
	var x any
	if err := n.Decode(&x); err != nil {
		v.bad("%v", err)
	}
	return x
}

// uses records the references of a condition.
func (v *template) uses(n *yaml.Node) {
	if n.Tag == "!Ref" {
		v.ref(n.Value)
	}
	for _, c := range n.Content {
		v.uses(c)
	}
}

// properties returns the properties of a resource.
func (v *template) properties(name string) map[string]any {
	n := v.Resources[name].Properties
	if n.Kind == 0 {
		return map[string]any{}
	}
	m, _ := v.value(&n).(map[string]any)
	return m
}

// check returns all errors that CloudFormation would report according to the resource schemas.
func (v *template) check() []string {
	for _, n := range v.Conditions {
		v.uses(&n)
	}
	for _, v.on = range []bool{true, false} {
		for name, r := range v.Resources {
			if _, ok := v.Resources[r.DependsOn]; r.DependsOn != "" && !ok {
				v.bad("%s: there is no %s", name, r.DependsOn)
			}
			if err := v.valid(r.Type, v.properties(name)); err != nil {
				v.bad("%s: %v", name, err)
			}
		}
	}
	for _, o := range v.Outputs {
		v.value(&o.Value)
	}
	for name := range v.Parameters {
		if !v.used[name] {
			v.bad("nothing uses the parameter %s", name)
		}
	}
	for name := range v.Conditions {
		if !v.used[name] {
			v.bad("nothing uses the condition %s", name)
		}
	}
	return v.wrong
}

// valid checks properties against the schema of a resource.
func (v *template) valid(kind string, properties map[string]any) error {
	raw, ok := v.schemas[kind]
	if !ok {
		return fmt.Errorf("there is no type %s", kind)
	}
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	if err := c.AddResource("schema.json", schema); err != nil {
		return err
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		return err
	}
	b, err := json.Marshal(properties)
	if err != nil {
		return err
	}
	plain, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		return err
	}
	return s.Validate(plain)
}

const file = root + "deploy/ecs/template.yaml"

func TestTheTemplateForECSIsWhatCloudFormationTakes(t *testing.T) {
	source := text(t, file)
	for _, w := range readTemplate(t, source).check() {
		t.Error(w)
	}
	for name, change := range map[string][2]string{
		"a misspelt property":       {"HealthCheckPath", "HealthCheckUrl"},
		"a type that is not":        {"AWS::WAFv2::IPSet", "AWS::WAFv2::Addresses"},
		"a resource of none":        {"!Ref Balancer", "!Ref Balancers"},
		"a parameter of none":       {"!Ref RatePerMinute", "!Ref Rate"},
		"an attribute of none":      {"!GetAtt Firewall.Arn", "!GetAtt Firewall.ARN"},
		"a condition of none":       {"!If [HasBlocked", "!If [Blocking"},
		"text for a number":         {"HealthyThresholdCount: 2", "HealthyThresholdCount: two"},
		"a word that is none":       {"Scope: REGIONAL", "Scope: GLOBAL"},
		"what is needed":            {"Scope: REGIONAL, ", ""},
		"deep within":               {"AggregateKeyType: IP", "AggregateKey: IP"},
		"a window that is none":     {"EvaluationWindowSec: 60", "EvaluationWindowSec: soon"},
		"a function that is none":   {"!GetAtt Store.Arn", "!Arn Store"},
		"a service before its time": {"DependsOn: Listener", "DependsOn: Listeners"},
	} {
		changed := strings.Replace(source, change[0], change[1], 1)
		if changed == source || len(readTemplate(t, changed).check()) == 0 {
			t.Errorf("%s is not noticed", name)
		}
	}
}

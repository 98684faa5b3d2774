package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A resource has the properties and attributes of a type in the template. A property with "!" is required.
type resource struct{ properties, attributes string }

// From the resource schemas of CloudFormation (September 2026), reduced to the used ones.
var resources = map[string]resource{
	"AWS::DynamoDB::Table":            {"BillingMode:string AttributeDefinitions:list KeySchema!:list GlobalSecondaryIndexes:list PointInTimeRecoverySpecification:map TimeToLiveSpecification:map", "Arn"},
	"AWS::SNS::Topic":                 {"KmsMasterKeyId:string TopicName:string", "TopicArn TopicName"},
	"AWS::SNS::Subscription":          {"TopicArn!:string Protocol!:string Endpoint:string RawMessageDelivery:bool RedrivePolicy:map", ""},
	"AWS::SQS::Queue":                 {"MessageRetentionPeriod:int SqsManagedSseEnabled:bool VisibilityTimeout:int RedrivePolicy:map QueueName:string", "Arn QueueName QueueUrl"},
	"AWS::SQS::QueuePolicy":           {"Queues!:list PolicyDocument!:map", ""},
	"AWS::CloudWatch::Alarm":          {"AlarmDescription:string Namespace:string MetricName:string Dimensions:list Statistic:string Period:int EvaluationPeriods!:int Threshold:int ComparisonOperator!:string TreatMissingData:string AlarmActions:list", "Arn"},
	"AWS::IAM::Role":                  {"AssumeRolePolicyDocument!:map ManagedPolicyArns:list Policies:list", "Arn RoleId"},
	"AWS::Lambda::Function":           {"Runtime:string Architectures:list Handler:string Code!:map Role!:string Timeout:int MemorySize:int Environment:map ReservedConcurrentExecutions:int", "Arn"},
	"AWS::Lambda::EventSourceMapping": {"EventSourceArn:string FunctionName!:string BatchSize:int FunctionResponseTypes:list ScalingConfig:map", "Id"},
	"AWS::Lambda::Permission":         {"Action!:string FunctionName!:string Principal!:string SourceArn:string", ""},
	"AWS::Events::Rule":               {"ScheduleExpression:string Targets:list State:string", "Arn"},
	"AWS::ApiGatewayV2::Api":          {"Name:string ProtocolType:string Target:string", "ApiId ApiEndpoint"},
}

// A template is the parsed file. References are *yaml.Node with their tags.
type template struct {
	Parameters map[string]yaml.Node `yaml:"Parameters"`
	Resources  map[string]declared  `yaml:"Resources"`
	Outputs    map[string]struct {
		Value yaml.Node `yaml:"Value"`
	} `yaml:"Outputs"`
	text string
}

type declared struct {
	Type       string               `yaml:"Type"`
	Properties map[string]yaml.Node `yaml:"Properties"`
}

func readTemplate(t testing.TB) *template {
	text, err := os.ReadFile("template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	v := &template{text: string(text)}
	d := yaml.NewDecoder(strings.NewReader(v.text))
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
	return v
}

var substituted = regexp.MustCompile(`\$\{([^}]+)\}`)

// refs returns errors of references in a value, and records the references.
func (v *template) refs(n *yaml.Node, used map[string]bool) (wrong []string) {
	attribute := func(name string) {
		of, what, ok := strings.Cut(name, ".")
		used[of] = true
		if r, is := v.Resources[of]; !is || ok && !slices.Contains(strings.Fields(resources[r.Type].attributes), what) {
			wrong = append(wrong, "there is no "+name)
		}
	}
	switch n.Tag {
	case "!Ref":
		used[n.Value] = true
		_, parameter := v.Parameters[n.Value]
		if _, is := v.Resources[n.Value]; !is && !parameter {
			wrong = append(wrong, "there is no "+n.Value)
		}
	case "!GetAtt":
		attribute(n.Value)
	case "!Sub":
		for _, m := range substituted.FindAllStringSubmatch(n.Value, -1) {
			if !strings.HasPrefix(m[1], "AWS::") {
				attribute(m[1])
			}
		}
	}
	for _, c := range n.Content {
		wrong = append(wrong, v.refs(c, used)...)
	}
	return wrong
}

// kind returns the kind of a value.
func kind(n *yaml.Node) string {
	if strings.HasPrefix(n.Tag, "!!") {
		return map[string]string{"!!str": "string", "!!int": "int", "!!bool": "bool", "!!seq": "list", "!!map": "map", "!!float": "float"}[n.Tag]
	}
	return "string" // the kind of references here
}

// check returns the errors that CloudFormation would report, as far as this test knows its rules.
func (v *template) check() (wrong []string) {
	used := make(map[string]bool)
	for name, r := range v.Resources {
		known, ok := resources[r.Type]
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s: there is no type %s", name, r.Type))
		}
		fields := make(map[string]string)
		for f := range strings.FieldsSeq(known.properties) {
			field, is, _ := strings.Cut(f, ":")
			field, needed := strings.CutSuffix(field, "!")
			if _, set := r.Properties[field]; needed && !set {
				wrong = append(wrong, fmt.Sprintf("%s: %s is missing", name, field))
			}
			fields[field] = is
		}
		for field, n := range r.Properties {
			if is := fields[field]; is != kind(&n) {
				wrong = append(wrong, fmt.Sprintf("%s: %s is %s, want %q", name, field, kind(&n), is))
			}
			for _, w := range v.refs(&n, used) {
				wrong = append(wrong, name+": "+w)
			}
		}
	}
	for name, o := range v.Outputs {
		for _, w := range v.refs(&o.Value, used) {
			wrong = append(wrong, name+": "+w)
		}
	}
	for name := range v.Parameters {
		if !used[name] {
			wrong = append(wrong, "nothing uses the parameter "+name)
		}
	}
	return wrong
}

func TestTheTemplateIsWhatCloudFormationTakes(t *testing.T) {
	for _, w := range readTemplate(t).check() {
		t.Error(w)
	}
	for name, change := range map[string][2]string{
		"a misspelt property":  {"VisibilityTimeout", "VisibleTimeout"},
		"a type that is not":   {"AWS::SQS::QueuePolicy", "AWS::SQS::Policy"},
		"a resource of none":   {"!Ref Topic", "!Ref Topics"},
		"an attribute of none": {"!GetAtt Queue.Arn", "!GetAtt Queue.ARN"},
		"text for a number":    {"VisibilityTimeout: 360", "VisibilityTimeout: six"},
		"what is needed":       {"Protocol: sqs, ", ""},
	} {
		v := new(template)
		if err := yaml.Unmarshal([]byte(strings.Replace(readTemplate(t).text, change[0], change[1], 1)), v); err != nil || len(v.check()) == 0 {
			t.Errorf("%s is not noticed: %v", name, err)
		}
	}
}

// The template sets every environment variable that the functions read, and the others have defaults.
func TestTheTemplateHasTheEnvironment(t *testing.T) {
	v := readTemplate(t)
	for name, want := range map[string]string{
		"Api":       "TABLE TOPIC_ARN JWKS ISSUER AUDIENCE",
		"Processor": "TABLE TOPIC_ARN QUEUE_URL DEAD_URL NTFY_TOPIC OPEN LOST",
		"Scheduler": "TABLE TOPIC_ARN SCHEDULE",
	} {
		var e struct {
			Variables map[string]yaml.Node `yaml:"Variables"`
		}
		n := v.Resources[name].Properties["Environment"]
		if err := n.Decode(&e); err != nil {
			t.Fatal(err)
		}
		for variable := range strings.FieldsSeq(want) {
			if _, ok := e.Variables[variable]; !ok {
				t.Errorf("%s has no %s", name, variable)
			}
		}
	}
}

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// limit is the value from which on, or below which, something is wrong, and the colour that says so.
type limit struct {
	value  float64
	below  bool // values below it are wrong, not those from it on
	colour string
}

// limits are the limits of the alert rules, by the name of the alert.
type limits map[string]limit

var (
	alertRule  = regexp.MustCompile(`- alert: (\w+)\n`)
	comparison = regexp.MustCompile(`([<>]|==) ([0-9.]+)(?: \* (\d+))?`)
	severity   = regexp.MustCompile(`severity: (\w+)`)
)

// limitsOf returns the limits in the text of Prometheus' rules: of each rule the first number that its expression
// compares with.
func limitsOf(rules string) (limits, error) {
	all := make(limits)
	found := alertRule.FindAllStringSubmatchIndex(rules, -1)
	for i, at := range found {
		end := len(rules)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		name, rule := rules[at[2]:at[3]], rules[at[1]:end]
		expr, _, _ := strings.Cut(rule, "labels:")
		compared, urgency := comparison.FindStringSubmatch(expr), severity.FindStringSubmatch(rule)
		if compared == nil || urgency == nil {
			return nil, fmt.Errorf("alert %s: no comparison with a number, or no severity", name)
		}
		l := limit{below: compared[1] == "<", colour: "orange"}
		if urgency[1] == "critical" {
			l.colour = "red"
		}
		for _, factor := range compared[2:] {
			if factor == "" {
				break
			}
			v, err := strconv.ParseFloat(factor, 64)
			if err != nil {
				return nil, fmt.Errorf("alert %s: %w", name, err)
			}
			if l.value == 0 {
				l.value = v
			} else {
				l.value *= v
			}
		}
		if l.value == 0 && compared[1] == "==" { // 0 of 0 and 1 is wrong
			l.value, l.below = 1, true
		} else if l.value == 0 { // a count: one is too many
			l.value = aboveZero
		}
		all[name] = l
	}
	return all, nil
}

// of returns the limit of an alert or, without one, a limit from that value on; 0: none.
func (l limits) of(alert string, bad float64) (limit, error) {
	if alert == "" {
		return limit{value: bad, colour: "orange"}, nil
	}
	if _, known := l[alert]; !known {
		return limit{}, fmt.Errorf("there is no alert %s", alert)
	}
	return l[alert], nil
}

// aboveZero is the limit of what must be 0: Grafana colours values from a threshold on, rules compare with "greater".
const aboveZero = 1e-9

// thresholds colours values on the wrong side of the limit.
func (l limit) thresholds() *grafana.ThresholdsConfigBuilder {
	steps := []grafana.Threshold{{Color: "green"}, {Value: &l.value, Color: l.colour}}
	if l.below {
		steps = []grafana.Threshold{{Color: l.colour}, {Value: &l.value, Color: "green"}}
	}
	return grafana.NewThresholdsConfigBuilder().Mode(grafana.ThresholdsModeAbsolute).Steps(steps)
}

# Does the plan fit, how long does a step take, and on what? All in closed form.
reckon plan tiny.yaml

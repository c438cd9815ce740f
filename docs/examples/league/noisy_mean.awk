# Mean of a Gaussian in two dimensions, covariance [[1, 0.5], [0.5, 1]], in plain awk: one noisy mean,
# and draws from the posterior that knows of the noise. The arguments are folders of tasks, a run
# in each.

function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand()) }

function number(text, key) {
  if (!match(text, "\"" key "\": [-+.0-9e]+")) { print key " is missing" > "/dev/stderr"; exit 2 }
  text = substr(text, RSTART, RLENGTH)
  sub(/.*: /, "", text)
  return text + 0
}

function run(folder) {
  task = ""; u = 0; v = 0
  while ((getline line < (folder "/task.json")) > 0) task = task line
  # Without a seed of the task, seconds: an example, and nothing to protect anybody with.
  if (task ~ /"seed": null/) srand(); else srand(number(task, "seed"))
  if (task !~ /"model": "gaussian_mean"/ || task !~ /"dim": 2,/) {
    print "only the mean of a Gaussian in two dimensions" > "/dev/stderr"; exit 2
  }
  n = number(task, "num_rows"); mu = number(task, "mu"); size = number(task, "num_draws")
  radius = number(task, "radius")
  while ((getline line < (folder "/rows.csv")) > 0) {
    split(line, x, ",")
    # Whitened by the inverse of the Cholesky factor [[1, 0], [0.5, 0.866]], then clipped to a ball.
    a = x[1]; b = (x[2] - 0.5 * x[1]) / sqrt(0.75)
    r = sqrt(a * a + b * b); s = r > radius ? radius / r : 1
    u += s * a; v += s * b
  }
  # Rounded up, so that what is told is not less than what is spent.
  z = sprintf("%.12g", 1.000000001 / mu)
  sd = 2 * radius / n * z
  u = u / n + sd * normal(); v = v / n + sd * normal()
  spread = sqrt(1 / n + sd * sd)
  for (k = 0; k < size; k++) {
    a = u + spread * normal(); b = v + spread * normal()
    printf "%.10g,%.10g\n", a, 0.5 * a + sqrt(0.75) * b > (folder "/draws.csv")
  }
  printf "{\"releases\": [[\"gaussian(%s)\", 1]], \"outside\": [\"a known seed\"]}\n", z > (folder "/ledger.json")
  close(folder "/task.json"); close(folder "/rows.csv")
  close(folder "/draws.csv"); close(folder "/ledger.json")
}

BEGIN { for (i = 1; i < ARGC; i++) run(ARGV[i]) }

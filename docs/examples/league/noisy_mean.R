# Mean of a Gaussian whose covariance is 2^-|i - j|, in any dimension, in R: one noisy mean, and draws
# from the posterior that knows of the noise. The arguments are folders of tasks, a run in each.
# Debian: r-base-core and r-cran-jsonlite.

library(jsonlite)

for (folder in commandArgs(trailingOnly = TRUE)) {
  task <- fromJSON(file.path(folder, "task.json"))
  if (task$model != "gaussian_mean") stop("only the mean of a Gaussian")
  if (!is.null(task$seed)) set.seed(task$seed)

  x <- as.matrix(read.csv(file.path(folder, "rows.csv"), header = FALSE))
  root <- t(chol(0.5^abs(outer(seq_len(task$dim), seq_len(task$dim), "-"))))
  white <- t(forwardsolve(root, t(x)))
  # Clipped to the public ball, the last thing that happens to a row.
  white <- white * pmin(1, task$bounds$radius / pmax(sqrt(rowSums(white^2)), 1e-300))

  # Rounded up, so that what is told is not less than what is spent.
  multiplier <- as.numeric(sprintf("%.12g", 1.000000001 / task$mu))
  sd <- 2 * task$bounds$radius / task$num_rows * multiplier
  noisy <- colMeans(white) + sd * rnorm(task$dim)

  spread <- sqrt(1 / task$num_rows + sd^2)
  draws <- noisy + spread * matrix(rnorm(task$dim * task$num_draws), task$dim)
  write.table(t(root %*% draws), file.path(folder, "draws.csv"), sep = ",",
              row.names = FALSE, col.names = FALSE)
  ledger <- list(releases = list(list(sprintf("gaussian(%.12g)", multiplier), unbox(1L))),
                 outside = if (is.null(task$seed)) list() else list(unbox("a known seed")))
  ledger$releases[[1]][[1]] <- unbox(ledger$releases[[1]][[1]])
  writeLines(toJSON(ledger), file.path(folder, "ledger.json"))
}

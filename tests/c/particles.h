/* SPDX-License-Identifier: MIT */
/* Reads the particles that bracewell-reconstruct --demo simulates, and writes maps: as much of the formats STAR and MRC as that
 * takes, in C and in C++. Whatever is not as expected ends the program. */
#ifndef PARTICLES_H
#define PARTICLES_H

#include <bracewell.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *name) {
  fprintf(stderr, "%s: %s\n", name, what);
  exit(1);
}

/* All cells of a table of a STAR file, as numbers; of "12@stack.mrcs" that is 12. */
struct table {
  char names[32][40];
  int columns, cells;
  double *values;
};

static struct table read_table(const char *path, const char *name) {
  struct table table;
  char word[256];
  int inside = 0;
  FILE *file = fopen(path, "r");
  memset(&table, 0, sizeof table);
  if (!file)
    fail("cannot be read", path);
  while (fscanf(file, "%255s", word) == 1) {
    if (strncmp(word, "data_", 5) == 0)
      inside = strcmp(word, name) == 0;
    else if (inside && word[0] == '_' && table.columns < 32)
      snprintf(table.names[table.columns++], sizeof table.names[0], "%.39s", word + 1);
    else if (inside && word[0] != '#' && strcmp(word, "loop_") != 0) {
      if (table.cells % 4096 == 0)
        table.values = (double *)realloc(table.values, sizeof(double) * (size_t)(table.cells + 4096));
      table.values[table.cells++] = atof(word);
    }
  }
  fclose(file);
  return table;
}

/* A column's number. */
static int column(const struct table *table, const char *name) {
  int i;
  for (i = 0; i < table->columns; ++i)
    if (strcmp(table->names[i], name) == 0)
      return i;
  fail("has no such column", name);
  return -1;
}

static double cell(const struct table *table, int row, const char *name) {
  return table->values[row * table->columns + column(table, name)];
}

struct particle {
  long image;                   /* in the stack, from 1 */
  double rot, tilt, psi;        /* degrees */
  double origin_x, origin_y;    /* pixels */
  bracewell_ctf ctf;
  int half;                     /* 0 or 1 */
};

struct particles {
  int count, box;
  double pixel_size; /* Angstrom */
  struct particle *list;
  FILE *stack;
};

/* folder/particles.star and folder/particles.mrcs */
static struct particles read_particles(const char *folder) {
  struct particles particles;
  struct table optics, table;
  char path[1024];
  int header[4], i;
  snprintf(path, sizeof path, "%s/particles.star", folder);
  optics = read_table(path, "data_optics");
  table = read_table(path, "data_particles");
  particles.pixel_size = cell(&optics, 0, "rlnImagePixelSize");
  particles.count = table.cells / table.columns;
  particles.list = (struct particle *)calloc((size_t)particles.count, sizeof(struct particle));
  for (i = 0; i < particles.count; ++i) {
    struct particle *p = particles.list + i;
    p->image = (long)cell(&table, i, "rlnImageName");
    p->rot = cell(&table, i, "rlnAngleRot");
    p->tilt = cell(&table, i, "rlnAngleTilt");
    p->psi = cell(&table, i, "rlnAnglePsi");
    p->origin_x = cell(&table, i, "rlnOriginXAngst") / particles.pixel_size;
    p->origin_y = cell(&table, i, "rlnOriginYAngst") / particles.pixel_size;
    p->ctf.defocus_u = cell(&table, i, "rlnDefocusU");
    p->ctf.defocus_v = cell(&table, i, "rlnDefocusV");
    p->ctf.defocus_angle = cell(&table, i, "rlnDefocusAngle");
    p->ctf.voltage = cell(&optics, 0, "rlnVoltage");
    p->ctf.spherical_aberration = cell(&optics, 0, "rlnSphericalAberration");
    p->ctf.amplitude_contrast = cell(&optics, 0, "rlnAmplitudeContrast");
    p->ctf.scale = 1;
    p->half = (int)cell(&table, i, "rlnRandomSubset") - 1;
  }
  free(optics.values);
  free(table.values);
  snprintf(path, sizeof path, "%s/particles.mrcs", folder);
  particles.stack = fopen(path, "rb");
  if (!particles.stack || fread(header, sizeof(int), 4, particles.stack) != 4)
    fail("cannot be read", path);
  if (header[0] != header[1] || header[3] != 2)
    fail("expected square images of float", path);
  particles.box = header[0];
  return particles;
}

static void read_image(const struct particles *particles, long image, float *pixels) {
  const size_t size = (size_t)particles->box * (size_t)particles->box;
  if (fseek(particles->stack, 1024 + (image - 1) * (long)(size * sizeof(float)), SEEK_SET) != 0 ||
      fread(pixels, sizeof(float), size, particles->stack) != size)
    fail("an image cannot be read", "particles.mrcs");
}

static void write_map(const char *path, int box, double pixel_size, const float *values) {
  const size_t size = (size_t)box * (size_t)box * (size_t)box;
  int header[256], i;
  float *cells = (float *)(header + 10);
  FILE *file = fopen(path, "wb");
  memset(header, 0, sizeof header);
  for (i = 0; i < 3; ++i) {
    header[i] = header[7 + i] = box;
    cells[i] = (float)(box * pixel_size);
    cells[3 + i] = 90;
    header[16 + i] = i + 1;
  }
  header[3] = 2;
  memcpy(header + 52, "MAP ", 4);
  memcpy(header + 53, "\x44\x44\0\0", 4);
  if (!file || fwrite(header, sizeof header, 1, file) != 1 || fwrite(values, sizeof(float), size, file) != size ||
      fclose(file) != 0)
    fail("cannot be written", path);
}

#endif
